/*
 * Measures the cost of libblkhash calls on top of the kernels.
 *
 *     blkhash-c-bench [-t THREADS] [-s SECONDS] [DIGEST...]
 *
 * "kernels" is one thread that hashes whole batches in place. Percentages are relative to that rate
 * times the number of threads. "CPU" is relative to CPU time instead, which depends less on other load
 * and shows the share that the kernels take. Each figure is the best of five rounds of SECONDS (0.2).
 */

#define _GNU_SOURCE 1

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <blkhash.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define UPDATE_SIZE (256 * KIB)
#define MAX_DEPTH 64
#define ROUNDS 5

static double seconds = 0.2;
static unsigned char *zeros;
static unsigned char *buffers[MAX_DEPTH];

static void fail(const char *what, int error)
{
    fprintf(stderr, "blkhash-c-bench: %s: %s\n", what, strerror(error));
    exit(1);
}

static void check(const char *what, int error)
{
    if (error)
        fail(what, error);
}

static double read_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Returns memory whose pages are present, filled with one byte. */
static unsigned char *allocate(size_t size, int fill)
{
    void *buf;

    check("memory", posix_memalign(&buf, 4096, size));
    memset(buf, fill, size);
    return (unsigned char *)buf;
}

static struct blkhash *new_hash(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash_opts *o = blkhash_opts_new(digest);
    struct blkhash *h;

    if (o == NULL)
        fail(digest, errno);
    check("streams", blkhash_opts_set_streams(o, 4));
    check("threads", blkhash_opts_set_threads(o, threads));
    check("queue depth", blkhash_opts_set_queue_depth(o, depth));
    h = blkhash_new_opts(o);
    if (h == NULL)
        fail("blkhash_new_opts", errno);
    blkhash_opts_free(o);
    return h;
}

static void finish(struct blkhash *h)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];

    check("blkhash_final", blkhash_final(h, md, NULL));
    blkhash_free(h);
}

/* Runs a round and returns the number of bytes that it hashed. */
typedef uint64_t round_function(const char *digest, uint8_t threads, unsigned int depth);

/* Rates in bytes per second. */
struct rate {
    double wall;
    double cpu;
};

/* Hashes whole batches on the caller's thread, without copies. */
static uint64_t kernels(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash *h = new_hash(digest, 1, 0);
    double end = now() + seconds;
    uint64_t bytes = 0;

    (void)threads;
    (void)depth;
    while (now() < end) {
        check("blkhash_update", blkhash_update(h, buffers[0], MIB));
        bytes += MIB;
    }
    finish(h);
    return bytes;
}

static uint64_t update_data(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash *h = new_hash(digest, threads, 0);
    double end = now() + seconds;
    uint64_t bytes = 0;

    (void)depth;
    while (now() < end) {
        check("blkhash_update", blkhash_update(h, buffers[0], UPDATE_SIZE));
        bytes += UPDATE_SIZE;
    }
    finish(h);
    return bytes;
}

static uint64_t aio_update_data(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash *h = new_hash(digest, threads, depth);
    struct blkhash_completion completions[MAX_DEPTH];
    struct pollfd poller;
    double end = now() + seconds;
    uint64_t bytes = 0, value;
    unsigned int in_flight;

    poller.fd = blkhash_aio_completion_fd(h);
    poller.events = POLLIN;
    for (in_flight = 0; in_flight < depth; in_flight++)
        check("blkhash_aio_update",
              blkhash_aio_update(h, buffers[in_flight], UPDATE_SIZE, buffers[in_flight]));
    while (in_flight > 0) {
        int count;

        if (poll(&poller, 1, -1) < 0 || read(poller.fd, &value, sizeof value) < 0)
            fail("eventfd", errno);
        count = blkhash_aio_completions(h, completions, depth);
        if (count < 0)
            fail("blkhash_aio_completions", -count);
        in_flight -= (unsigned int)count;
        bytes += (uint64_t)count * UPDATE_SIZE;
        if (now() >= end)
            continue;
        for (int i = 0; i < count; i++, in_flight++)
            check("blkhash_aio_update", blkhash_aio_update(h, completions[i].user_data, UPDATE_SIZE,
                                                           completions[i].user_data));
    }
    finish(h);
    return bytes;
}

static uint64_t update_zero(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash *h = new_hash(digest, threads, 0);

    (void)depth;
    check("blkhash_update", blkhash_update(h, zeros, GIB));
    finish(h);
    return GIB;
}

/* Reads the same memory with the widest loads of the compiler. */
static uint64_t read_memory(const char *digest, uint8_t threads, unsigned int depth)
{
    uint64_t all = 0;

    (void)digest;
    (void)threads;
    (void)depth;
    for (size_t i = 0; i < GIB; i += 64) {
        uint64_t words[8];

        memcpy(words, zeros + i, sizeof words);
        for (int j = 0; j < 8; j++)
            all |= words[j];
    }
    if (all != 0)
        fail("memory", EINVAL);
    return GIB;
}

#define LARGE_IMAGE ((uint64_t)(2.44 * 1024) * GIB)

static uint64_t zero(const char *digest, uint8_t threads, unsigned int depth)
{
    struct blkhash *h = new_hash(digest, threads, 0);

    (void)depth;
    check("blkhash_zero", blkhash_zero(h, LARGE_IMAGE));
    finish(h);
    return LARGE_IMAGE;
}

/* Returns the best rate of all rounds. */
static struct rate measure(round_function *round, const char *digest, uint8_t threads,
                           unsigned int depth)
{
    struct rate best = {0, 0};

    for (int i = 0; i < ROUNDS; i++) {
        double wall = now(), cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        double bytes = (double)round(digest, threads, depth);

        wall = bytes / (now() - wall);
        cpu = bytes / (read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        best.wall = wall > best.wall ? wall : best.wall;
        best.cpu = cpu > best.cpu ? cpu : best.cpu;
    }
    return best;
}

static void print(const char *digest, const char *what, uint8_t threads, struct rate rate,
                  struct rate of)
{
    printf("%-10s  %-22s %7u  %9.0f  %4.0f %%  %4.0f %%\n", digest, what, threads,
           rate.wall / (double)MIB, 100 * rate.wall / (of.wall * threads),
           100 * rate.cpu / of.cpu);
    fflush(stdout);
}

static void bench(const char *digest, uint8_t most_threads, struct rate memory)
{
    static const unsigned int depths[] = {8, 16, 32, 64};
    struct rate kernel = measure(kernels, digest, 1, 0);

    print(digest, "kernels", 1, kernel, kernel);
    for (uint8_t threads = 1; threads <= most_threads; threads++) {
        char what[32];
        struct rate rate = measure(update_data, digest, threads, 0);
        /* The memory was read by one thread. */
        struct rate read = {memory.wall / threads, memory.cpu};

        print(digest, "update data", threads, rate, kernel);
        for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
            snprintf(what, sizeof what, "aio, depth %u", depths[i]);
            rate = measure(aio_update_data, digest, threads, depths[i]);
            print(digest, what, threads, rate, kernel);
        }
        rate = measure(update_zero, digest, threads, 0);
        print(digest, "update zero (of read)", threads, rate, read);
        rate = measure(zero, digest, threads, 0);
        printf("%-10s  %-22s %7u  %7.3f s for 2.44 TiB\n", digest, "zero", threads,
               (double)LARGE_IMAGE / rate.wall);
    }
}

int main(int argc, char **argv)
{
    long most_threads = sysconf(_SC_NPROCESSORS_ONLN);
    struct rate memory;
    int option;

    while ((option = getopt(argc, argv, "t:s:")) != -1) {
        if (option == 't')
            most_threads = atol(optarg);
        else if (option == 's')
            seconds = atof(optarg);
        else
            return 2;
    }
    if (most_threads < 1 || most_threads > 64 || !(seconds > 0)) {
        fprintf(stderr, "usage: blkhash-c-bench [-t THREADS] [-s SECONDS] [DIGEST...]\n");
        return 2;
    }
    zeros = allocate(GIB, 0);
    for (int i = 0; i < MAX_DEPTH; i++)
        buffers[i] = allocate(MIB, 'A' + i);

    printf("libblkhash %s, updates of 256 KiB, blocks of 64 KiB, streams:4\n\n", blkhash_version());
    printf("%-10s  %-22s %7s  %9s  %6s  %6s\n", "digest", "calls", "threads", "MiB/s", "", "CPU");
    memory = measure(read_memory, NULL, 1, 0);
    print("", "read memory", 1, memory, memory);
    if (optind == argc)
        bench("sha256", (uint8_t)most_threads, memory);
    for (; optind < argc; optind++)
        bench(argv[optind], (uint8_t)most_threads, memory);
    return 0;
}
