/*
 * Measures libblkhash in a case that the C project blkhash publishes: updates that are lent (aio),
 * the construction "flat", and content that is one byte 0x55 over and over, zeros, or a hole.
 *
 *     blkhash-cases [-d DIGEST] [-b BLOCK_SIZE] [-r READ_SIZE] [-t THREADS] [-q QUEUE_DEPTH]
 *                   [-s SECONDS | -n BYTES] data|zero|hole
 *
 * A hole needs BYTES, because blkhash_zero() returns before the zeros are hashed.
 * Prints a JSON object with the bytes that were hashed, the time from before the hash was created
 * until it was freed, the CPU time and the checksum. scripts/record compares the checksum with another
 * implementation's.
 */

#define _GNU_SOURCE 1

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <blkhash.h>

#define HOLE_SIZE ((uint64_t)16 << 30)

static const char *digest = "sha256";
static unsigned long block_size = 64 << 10, read_size = 256 << 10, threads = 4, depth = 16;
static double seconds = 1;
/* 0: as many as SECONDS allow. */
static uint64_t bytes;

/* The buffers that are not lent. */
static void **idle;

static void fail(const char *what, int error)
{
    fprintf(stderr, "blkhash-cases: %s: %s\n", what, strerror(error));
    exit(1);
}

static void check(const char *what, int error)
{
    if (error)
        fail(what, error);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_time(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void allocate(int fill)
{
    idle = calloc(depth, sizeof *idle);
    if (idle == NULL)
        fail("memory", ENOMEM);
    for (size_t i = 0; i < depth; i++) {
        check("memory", posix_memalign(&idle[i], 4096, read_size));
        memset(idle[i], fill, read_size);
    }
}

static struct blkhash *new_hash(void)
{
    struct blkhash_opts *o = blkhash_opts_new(digest);
    struct blkhash *h;

    if (o == NULL)
        fail(digest, errno);
    check("construction", blkhash_opts_set_construction(o, "flat"));
    check("block size", blkhash_opts_set_block_size(o, (uint32_t)block_size));
    check("threads", blkhash_opts_set_threads(o, (uint8_t)threads));
    check("queue depth", blkhash_opts_set_queue_depth(o, (unsigned int)depth));
    h = blkhash_new_opts(o);
    if (h == NULL)
        fail("blkhash_new_opts", errno);
    blkhash_opts_free(o);
    return h;
}

/* Returns the length of the next update, at most `most`. 0 ends the content. */
static uint64_t next(uint64_t sent, uint64_t most, double end)
{
    if (bytes == 0)
        return sent == 0 || now() < end ? most : 0;
    return bytes - sent < most ? bytes - sent : most;
}

static uint64_t add_hole(struct blkhash *h)
{
    uint64_t sent = 0, length;

    while ((length = next(sent, HOLE_SIZE, 0)) > 0) {
        check("blkhash_zero", blkhash_zero(h, length));
        sent += length;
    }
    return sent;
}

static uint64_t lend(struct blkhash *h, double end)
{
    struct blkhash_completion *done = calloc(depth, sizeof *done);
    struct pollfd poller = {blkhash_aio_completion_fd(h), POLLIN, 0};
    size_t idle_count = depth;
    uint64_t sent = 0, length;
    char wake_ups[64];
    int count;

    if (done == NULL)
        fail("memory", ENOMEM);
    if (poller.fd < 0)
        fail("blkhash_aio_completion_fd", -poller.fd);
    for (;;) {
        while (idle_count > 0 && (length = next(sent, read_size, end)) > 0) {
            void *buffer = idle[--idle_count];

            check("blkhash_aio_update", blkhash_aio_update(h, buffer, length, buffer));
            sent += length;
        }
        if (idle_count == depth)
            break;
        if (poll(&poller, 1, -1) < 0 || read(poller.fd, wake_ups, sizeof wake_ups) < 0)
            fail("completions", errno);
        count = blkhash_aio_completions(h, done, (unsigned int)depth);
        if (count < 0)
            fail("blkhash_aio_completions", -count);
        for (int i = 0; i < count; i++) {
            check("update", done[i].error);
            idle[idle_count++] = done[i].user_data;
        }
    }
    free(done);
    return sent;
}

static int is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: blkhash-cases [-d DIGEST] [-b BLOCK_SIZE] [-r READ_SIZE] [-t THREADS] "
                    "[-q QUEUE_DEPTH] [-s SECONDS | -n BYTES] data|zero|hole\n");
    return 2;
}

int main(int argc, char **argv)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    char implementation[64];
    struct blkhash *h;
    unsigned int md_len;
    double start, cpu;
    uint64_t sent;
    int option;

    while ((option = getopt(argc, argv, "d:b:r:t:q:s:n:")) != -1) {
        switch (option) {
        case 'd': digest = optarg; break;
        case 'b': block_size = strtoul(optarg, NULL, 10); break;
        case 'r': read_size = strtoul(optarg, NULL, 10); break;
        case 't': threads = strtoul(optarg, NULL, 10); break;
        case 'q': depth = strtoul(optarg, NULL, 10); break;
        case 's': seconds = atof(optarg); break;
        case 'n': bytes = strtoull(optarg, NULL, 10); break;
        default: return usage();
        }
    }
    if (argc - optind != 1 || threads < 1 || threads > 255 || depth < 1 || read_size < 1 ||
        block_size > UINT32_MAX || !(seconds > 0) || (bytes == 0 && is(argv[optind], "hole")) ||
        !(is(argv[optind], "data") || is(argv[optind], "zero") || is(argv[optind], "hole")))
        return usage();
    allocate(is(argv[optind], "data") ? 0x55 : 0);

    start = now();
    cpu = cpu_time();
    h = new_hash();
    snprintf(implementation, sizeof implementation, "%s", blkhash_implementation(h));
    sent = is(argv[optind], "hole") ? add_hole(h) : lend(h, start + seconds);
    check("blkhash_final", blkhash_final(h, md, &md_len));
    blkhash_free(h);
    cpu = cpu_time() - cpu;
    seconds = now() - start;

    printf("{\"version\": \"%s\", \"implementation\": \"%s\", \"bytes\": %llu, \"seconds\": %.6f, "
           "\"cpu\": %.6f, \"checksum\": \"",
           blkhash_version(), implementation, (unsigned long long)sent, seconds, cpu);
    for (unsigned int i = 0; i < md_len; i++)
        printf("%02x", md[i]);
    printf("\"}\n");
    return 0;
}
