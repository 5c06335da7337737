/* Helpers that the tests share. They compile as C99, C17 and C++17. */

#ifndef BLKHASH_TESTS_COMMON_H
#define BLKHASH_TESTS_COMMON_H

#define _GNU_SOURCE 1

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#include <blkhash.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define HEX_SIZE (2 * BLKHASH_MAX_MD_SIZE + 1)

/* Returns whether a checker slows the tests down. Then they run fewer cases. */
static inline int is_slow(void)
{
    return getenv("BLKHASH_TEST_SLOW") != NULL;
}

static inline unsigned char *allocate(size_t size)
{
    unsigned char *buf = (unsigned char *)malloc(size > 0 ? size : 1);

    assert_non_null(buf);
    return buf;
}

/* Fills buf with the content at offset, whose bytes count from 0 to 250. */
static inline void count251(unsigned char *buf, size_t size, uint64_t offset)
{
    for (size_t i = 0; i < size; i++)
        buf[i] = (unsigned char)((offset + i) % 251);
}

static inline struct blkhash *new_hash(const char *digest, const char *construction,
                                       uint32_t block_size, uint8_t threads, unsigned int depth)
{
    struct blkhash_opts *o = blkhash_opts_new(digest);
    struct blkhash *h;

    assert_non_null(o);
    assert_int_equal(blkhash_opts_set_construction(o, construction), 0);
    assert_int_equal(blkhash_opts_set_block_size(o, block_size), 0);
    assert_int_equal(blkhash_opts_set_threads(o, threads), 0);
    assert_int_equal(blkhash_opts_set_queue_depth(o, depth), 0);
    h = blkhash_new_opts(o);
    assert_non_null(h);
    blkhash_opts_free(o);
    return h;
}

/* Finalizes and frees a hash, and writes its checksum to hex. */
static inline void finish(struct blkhash *h, char *hex)
{
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int len;

    assert_int_equal(blkhash_final(h, md, &len), 0);
    hex[0] = 0;
    for (unsigned int i = 0; i < len; i++)
        sprintf(hex + 2 * i, "%02x", md[i]);
    blkhash_free(h);
}

static inline void assert_checksum(struct blkhash *h, const char *expected)
{
    char hex[HEX_SIZE];

    finish(h, hex);
    assert_string_equal(hex, expected);
}

/* Waits until there are completions, fetches them and returns their number. */
static inline int wait_for_completions(struct blkhash *h, struct blkhash_completion *out,
                                       unsigned int count)
{
    struct pollfd poller;
    uint64_t value;

    poller.fd = blkhash_aio_completion_fd(h);
    poller.events = POLLIN;
    assert_true(poller.fd >= 0);
    assert_int_equal(poll(&poller, 1, -1), 1);
    assert_int_equal(read(poller.fd, &value, sizeof value), sizeof value);
    return blkhash_aio_completions(h, out, count);
}

#endif
