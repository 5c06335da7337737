/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * Prints the checksum of a disk image of any format that QEMU knows, as `qemu-img checksum` does:
 *
 *     image-checksum [-f FORMAT] [--image-opts] [-T CACHE] [-p] FILENAME
 *
 * It shows how a program with an event loop uses libblkhash: extents that read as zeros are told to
 * it and not read, data is read into several buffers at a time, and each is lent to the hash when
 * its turn comes. docs/use/qemu.md says what takes the place of what inside QEMU. Here qemu-nbd opens the
 * image, and libnbd reads it.
 *
 *     cc image-checksum.c -o image-checksum $(pkg-config --cflags --libs blkhash libnbd)
 */

#define _GNU_SOURCE 1

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <blkhash.h>
#include <libnbd.h>

#define BLOCK_SIZE (64 * 1024)
#define READ_SIZE (256 * 1024)
#define DEPTH 16
#define STATUS_SIZE ((uint64_t)1 << 30)
#define MAX_EXTENTS 4096

/* What a part of the image waits for. */
enum state { UNUSED, READING, READ, ZEROS, HASHING };

struct part {
    enum state state;
    uint64_t length;
    unsigned char *buf;
    int error;
};

struct extent {
    uint64_t length;
    int is_zero;
};

static struct nbd_handle *nbd;
static struct blkhash *hash;

/* The parts in the order of the image: read from `first` on, used from `next` on. */
static struct part parts[DEPTH];
static unsigned int first, next;

/* The extents from `offset` on. */
static struct extent extents[MAX_EXTENTS];
static size_t extent, extent_count;
static uint64_t size, offset;

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "image-checksum: %s: %s\n", what, why);
    exit(1);
}

static void check_nbd(const char *what, int64_t result)
{
    if (result < 0)
        fail(what, nbd_get_error());
}

static void check_hash(const char *what, int error)
{
    if (error)
        fail(what, strerror(error));
}

static void connect_image(const char *format, const char *cache, int image_opts,
                          const char *filename)
{
    char cache_option[64], format_option[64];
    char *arguments[8];
    int count = 0;

    snprintf(cache_option, sizeof cache_option, "--cache=%s", cache);
    arguments[count++] = "qemu-nbd";
    arguments[count++] = "--read-only";
    arguments[count++] = cache_option;
    if (image_opts) {
        arguments[count++] = "--image-opts";
    } else if (format != NULL) {
        snprintf(format_option, sizeof format_option, "--format=%s", format);
        arguments[count++] = format_option;
    }
    arguments[count++] = "--";
    arguments[count++] = (char *)filename;
    arguments[count] = NULL;

    nbd = nbd_create();
    if (nbd == NULL)
        fail("libnbd", nbd_get_error());
    check_nbd(filename, nbd_add_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION));
    check_nbd(filename, nbd_connect_systemd_socket_activation(nbd, arguments));
    check_nbd(filename, nbd_get_size(nbd));
    size = (uint64_t)nbd_get_size(nbd);
}

/* Four streams, as `qemu-img checksum` and blksum have it. */
static void make_hash(void)
{
    struct blkhash_opts *o = blkhash_opts_new("sha256");

    if (o == NULL)
        fail("blkhash_opts_new", strerror(errno));
    check_hash("block size", blkhash_opts_set_block_size(o, BLOCK_SIZE));
    check_hash("streams", blkhash_opts_set_streams(o, 4));
    check_hash("queue depth", blkhash_opts_set_queue_depth(o, DEPTH));
    hash = blkhash_new_opts(o);
    if (hash == NULL)
        fail("blkhash_new_opts", strerror(errno));
    blkhash_opts_free(o);
}

static int take_extents(void *user_data, const char *context, uint64_t start, uint32_t *entries,
                        size_t count, int *error)
{
    (void)user_data;
    (void)start;
    (void)error;
    if (strcmp(context, LIBNBD_CONTEXT_BASE_ALLOCATION) != 0)
        return 0;
    for (size_t i = 0; i + 1 < count && extent_count < MAX_EXTENTS; i += 2) {
        extents[extent_count].length = entries[i];
        extents[extent_count].is_zero = (entries[i + 1] & LIBNBD_STATE_ZERO) != 0;
        extent_count++;
    }
    return 0;
}

/* The extent at `offset`. */
static struct extent *find_extent(void)
{
    uint64_t length = size - offset < STATUS_SIZE ? size - offset : STATUS_SIZE;

    if (extent < extent_count)
        return &extents[extent];
    extent = extent_count = 0;
    if (nbd_can_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) > 0) {
        nbd_extent_callback callback = {.callback = take_extents};

        check_nbd("block status", nbd_block_status(nbd, length, offset, callback, 0));
    }
    /* Without an answer it is data. */
    if (extent_count == 0 || extents[0].length == 0) {
        extents[0].length = length;
        extents[0].is_zero = 0;
        extent_count = 1;
    }
    return &extents[0];
}

static int finish_read(void *user_data, int *error)
{
    struct part *part = user_data;

    part->state = READ;
    part->error = *error;
    return 1;
}

/* Starts the next part of the image, all of it data or all zeros. */
static void start_part(struct part *part)
{
    struct extent *found = find_extent();
    nbd_completion_callback callback = {.callback = finish_read, .user_data = part};

    part->length = found->length < size - offset ? found->length : size - offset;
    if (found->is_zero) {
        part->state = ZEROS;
    } else {
        /* Up to the end of a block: only whole ones are hashed where they are. */
        uint64_t most = READ_SIZE - offset % BLOCK_SIZE;

        if (part->length > most)
            part->length = most;
        part->state = READING;
        check_nbd("read", nbd_aio_pread(nbd, part->buf, part->length, offset, callback, 0));
    }
    offset += part->length;
    found->length -= part->length;
    if (found->length == 0)
        extent++;
}

/* Hands a part to the hash, and returns whether it was there. */
static int hash_part(struct part *part)
{
    switch (part->state) {
    case READ:
        check_hash("read", part->error);
        part->state = HASHING;
        check_hash("hash", blkhash_aio_update(hash, part->buf, part->length, part));
        return 1;
    case ZEROS:
        part->state = UNUSED;
        check_hash("hash", blkhash_zero(hash, part->length));
        return 1;
    default:
        return 0;
    }
}

static void take_completions(void)
{
    struct blkhash_completion completions[DEPTH];
    uint64_t value;
    int count;

    if (read(blkhash_aio_completion_fd(hash), &value, sizeof value) < 0 && errno != EAGAIN)
        fail("eventfd", strerror(errno));
    count = blkhash_aio_completions(hash, completions, DEPTH);
    if (count < 0)
        check_hash("hash", -count);
    for (int i = 0; i < count; i++) {
        struct part *part = completions[i].user_data;

        check_hash("hash", completions[i].error);
        part->state = UNUSED;
    }
}

/* Waits until something was read or hashed. */
static void wait_for_events(void)
{
    unsigned int direction = nbd_aio_get_direction(nbd);
    struct pollfd fds[2] = {
        {.fd = nbd_aio_get_fd(nbd)},
        {.fd = blkhash_aio_completion_fd(hash), .events = POLLIN},
    };

    if (direction & LIBNBD_AIO_DIRECTION_READ)
        fds[0].events |= POLLIN;
    if (direction & LIBNBD_AIO_DIRECTION_WRITE)
        fds[0].events |= POLLOUT;
    if (poll(fds, 2, -1) < 0)
        fail("poll", strerror(errno));

    /* A call at a time: the first may change what the connection waits for. */
    if ((direction & LIBNBD_AIO_DIRECTION_READ) && (fds[0].revents & (POLLIN | POLLHUP)))
        check_nbd("connection", nbd_aio_notify_read(nbd));
    else if ((direction & LIBNBD_AIO_DIRECTION_WRITE) && (fds[0].revents & POLLOUT))
        check_nbd("connection", nbd_aio_notify_write(nbd));
    else if (fds[0].revents & (POLLERR | POLLNVAL | POLLHUP))
        fail("connection", "lost");
    if (fds[1].revents)
        take_completions();
}

static void hash_image(int show_progress)
{
    unsigned int shown = 101;

    for (;;) {
        while (offset < size && parts[next % DEPTH].state == UNUSED)
            start_part(&parts[next++ % DEPTH]);
        while (first != next && hash_part(&parts[first % DEPTH]))
            first++;
        if (show_progress && size > 0) {
            unsigned int percent = (unsigned int)(100 * ((double)offset / (double)size));

            if (percent != shown)
                fprintf(stderr, "    (%u/100%%)\r", percent);
            shown = percent;
        }
        if (first == next) {
            /* All that is left to do is the hash's. */
            if (offset == size)
                break;
            if (parts[next % DEPTH].state == UNUSED)
                continue;
        }
        wait_for_events();
    }
    if (show_progress)
        fputc('\n', stderr);
}

static void usage(FILE *out)
{
    fputs("usage: image-checksum [-f FORMAT] [--image-opts] [-T CACHE] [-p] FILENAME\n", out);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'}, {"image-opts", no_argument, NULL, 'o'},
        {"progress", no_argument, NULL, 'p'},     {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *format = NULL, *cache = "writeback";
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int md_len;
    int image_opts = 0, show_progress = 0, option;

    while ((option = getopt_long(argc, argv, "f:T:ph", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            format = optarg;
            break;
        case 'T':
            cache = optarg;
            break;
        case 'p':
            show_progress = 1;
            break;
        case 'o':
            image_opts = 1;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (optind + 1 != argc || (image_opts && format != NULL)) {
        usage(stderr);
        return 2;
    }

    connect_image(format, cache, image_opts, argv[optind]);
    make_hash();
    for (int i = 0; i < DEPTH; i++) {
        parts[i].buf = malloc(READ_SIZE);
        if (parts[i].buf == NULL)
            fail("memory", strerror(errno));
    }
    hash_image(show_progress);
    check_hash("blkhash_final", blkhash_final(hash, md, &md_len));
    for (unsigned int i = 0; i < md_len; i++)
        printf("%02x", md[i]);
    printf("  %s\n", argv[optind]);
    if (fflush(stdout) != 0)
        fail("output", strerror(errno));

    blkhash_free(hash);
    for (int i = 0; i < DEPTH; i++)
        free(parts[i].buf);
    nbd_shutdown(nbd, 0);
    nbd_close(nbd);
    return 0;
}
