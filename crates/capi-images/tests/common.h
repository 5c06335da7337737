/* Helpers that the tests share. They compile as C99, C17, C23 and C++17. */

#ifndef BLKSUM_TESTS_COMMON_H
#define BLKSUM_TESTS_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#include <blksum.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define HEX_SIZE (2 * BLKSUM_MAX_MD_SIZE + 1)

/* Fails unless error is of a kind and has a message with a text. Frees it. */
static inline void assert_error(struct blksum_error *error, int kind, const char *text)
{
    assert_non_null(error);
    if (blksum_error_kind(error) != kind || strstr(blksum_error_message(error), text) == NULL)
        fail_msg("kind %d: %s", blksum_error_kind(error), blksum_error_message(error));
    blksum_error_free(error);
}

static inline void assert_no_error(struct blksum_error *error)
{
    if (error != NULL)
        fail_msg("%s", blksum_error_message(error));
}

/* Writes a file. */
static inline void write_file(const char *name, const void *content, size_t size)
{
    FILE *file = fopen(name, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void to_hex(const unsigned char *md, unsigned int len, char *hex)
{
    hex[0] = 0;
    for (unsigned int i = 0; i < len; i++)
        sprintf(hex + 2 * i, "%02x", md[i]);
}

/* Makes a btrfs file system with the file folder/file in a file, without a mount. */
static inline void make_btrfs(const char *name, const void *content, size_t size)
{
    char command[200];

    assert_true(mkdir("files", 0777) == 0 || errno == EEXIST);
    assert_true(mkdir("files/folder", 0777) == 0 || errno == EEXIST);
    write_file("files/folder/file", content, size);
    snprintf(command, sizeof command,
             "rm -f %s && truncate -s 128M %s && PATH=$PATH:/usr/sbin:/sbin mkfs.btrfs -q --rootdir files %s",
             name, name, name);
    assert_int_equal(system(command), 0);
}

static inline struct blksum_image *open_image(const char *name, const struct blksum_opts *opts)
{
    struct blksum_error *error;
    struct blksum_image *image = blksum_image_open(name, opts, &error);

    assert_no_error(error);
    assert_non_null(image);
    return image;
}

static inline struct blksum_map *open_map(const char *name, const struct blksum_opts *opts)
{
    struct blksum_error *error;
    struct blksum_map *map = blksum_map_open(name, opts, &error);

    assert_no_error(error);
    assert_non_null(map);
    return map;
}

static inline struct blksum_opts *opts_with(const char *name, const char *value)
{
    struct blksum_error *error;
    struct blksum_opts *opts = blksum_opts_new();

    assert_non_null(opts);
    blksum_opts_set(opts, name, value, &error);
    assert_no_error(error);
    return opts;
}

#endif
