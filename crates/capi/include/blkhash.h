/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * libblkhash: checksums of disk images
 *
 *     struct blkhash *h = blkhash_new();
 *
 *     blkhash_update(h, data, data_len);
 *     blkhash_zero(h, hole_len);
 *     blkhash_final(h, md, &md_len);
 *     blkhash_free(h);
 *
 * This example uses the construction "flat". Its checksum differs from the one that the blksum
 * command prints by default, which is that of "streams:4". To compute the same as blksum, create
 * the hash with blkhash_new_streams4(64 * 1024, "sha256").
 *
 * The content is cut into blocks (64 KiB unless told), each block is hashed, and the checksum is
 * made of the blocks' digests as its construction says. The value depends on the content, the
 * digest, the block size and the construction alone: not on how the content is cut into calls,
 * on whether zeros come as data or with blkhash_zero(), nor on the number of threads.
 *
 * Errors. Functions that return int return 0 or an errno value, where nothing else is said;
 * constructors return NULL and set errno. EINVAL is a null pointer, a value out of range, or a
 * hash that was finalized or belongs to the parent process. An error of a hash stays: all
 * later calls fail with it, since its content has a gap. Only EAGAIN does not.
 *
 * Threads. A hash may be used from any thread. Calls from several at a time wait for each other,
 * and it is up to them in which order the content comes. The library's own threads start when there
 * is work for them, take no signals, and end with the hash.
 *
 * fork(). A hash belongs to the process that made it. In a child every call fails with EINVAL, and
 * blkhash_free() leaves the memory alone.
 *
 * blkhash(3), blkhash-opts(3) and blkhash-aio(3) have an example program each.
 */

#ifndef BLKHASH_H
#define BLKHASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No digest is longer. */
#define BLKHASH_MAX_MD_SIZE 64

/* A checksum in the making. */
struct blkhash;

/* What it is made with. */
struct blkhash_opts;

/*
 * A new hash with sha256, blocks of 64 KiB, 4 threads and the construction "flat": that of blkhash
 * 0.10 and later.
 *
 * With two arguments, blkhash_new(block_size, digest_name) is blkhash_new_streams4() of these: the
 * form and the value of blkhash 0.3 to 0.7, and of the blksum command unless told otherwise.
 */
struct blkhash *blkhash_new(void);

/* A new hash with the construction "streams:4". EINVAL as for the options of the same names. */
struct blkhash *blkhash_new_streams4(size_t block_size, const char *digest_name);

/* A new hash with these options, which can be changed or freed after that. */
struct blkhash *blkhash_new_opts(const struct blkhash_opts *opts);

/*
 * Takes the next len bytes. Blocks of zeros are found and not hashed. The bytes are copied, unless
 * there are many: then the call returns when they are hashed.
 *
 * EOVERFLOW: the content would have more than 2^64 - 1 bytes.
 */
int blkhash_update(struct blkhash *h, const void *buf, size_t len);

/*
 * Takes len zero bytes: what is known to read as zeros need not be read. It takes time in
 * proportion to len, some 15 nanoseconds a block; with "linear", as long as other bytes.
 */
int blkhash_zero(struct blkhash *h, size_t len);

/*
 * Ends the content and writes its checksum to md_value, which has room for BLKHASH_MAX_MD_SIZE
 * bytes. Where md_len is not NULL, it is set to the length of the checksum.
 *
 * A second call is EINVAL. ENOTRECOVERABLE, of this or any other function, is a bug of the library.
 */
int blkhash_final(struct blkhash *h, unsigned char *md_value, unsigned int *md_len);

/* Frees a hash, finalized or not, and ends its threads. What was lent to it is free, too. */
void blkhash_free(struct blkhash *h);

/* The implementation that hashes its blocks on this CPU, such as "sha256-avx512-x16". */
const char *blkhash_implementation(const struct blkhash *h);

/*
 * Writes the names of up to count digests to names, and returns how many. With names NULL, returns
 * how many there are.
 */
size_t blkhash_digests(const char **names, size_t count);

/* The version of the library. */
const char *blkhash_version(void);

/*
 * Asynchronous updates
 *
 * The buffer is lent until the completion of the update was fetched, and hashed where it is:
 * nothing is copied but what is less than a block at its ends, and nothing waits. Updates come into
 * the checksum in the order of the calls, also among blkhash_update() and blkhash_zero(), and
 * complete in any order.
 */

struct blkhash_completion {
    /* What blkhash_aio_update() was given. */
    void *user_data;

    /* 0, or an errno value. */
    int error;
};

/*
 * Lends the next len bytes to the hash. As many updates as the queue depth may be in flight,
 * from this call until their completion was fetched. EAGAIN: there are that many; nothing was taken,
 * call again after fetching completions. ENOTSUP: the options have no queue depth.
 */
int blkhash_aio_update(struct blkhash *h, const void *buf, size_t len, void *user_data);

/*
 * A file descriptor that becomes readable when there are completions: an eventfd that does not
 * block. Read its 8 bytes, then fetch the completions. It belongs to the hash. Returns a negative
 * errno value on errors, -ENOTSUP where the options have no queue depth.
 */
int blkhash_aio_completion_fd(struct blkhash *h);

/*
 * Fetches up to count completions. Returns how many, 0 if there are none now, or a negative errno
 * value. After an error of the hash blkhash_free() gives the buffers back.
 */
int blkhash_aio_completions(struct blkhash *h, struct blkhash_completion *out, unsigned int count);

/*
 * Options
 *
 * Setters return EINVAL for a value that is not allowed, and leave what was set before. Getters
 * return 0 or NULL, with errno set, where o is NULL.
 */

/*
 * New options for a digest that blkhash_digests() has, or another of its names, with the defaults
 * of blkhash_new(). EINVAL: no such digest, or none for checksums.
 */
struct blkhash_opts *blkhash_opts_new(const char *digest_name);

void blkhash_opts_free(struct blkhash_opts *o);

/* A power of two from 512 bytes to 64 MiB. It changes the checksum. */
int blkhash_opts_set_block_size(struct blkhash_opts *o, uint32_t block_size);

/*
 * Threads that hash at the same time, 1 to 255. One of them is the caller's when it has to wait in
 * blkhash_update(). It does not change the checksum.
 */
int blkhash_opts_set_threads(struct blkhash_opts *o, uint8_t threads);

/* Asynchronous updates in flight, up to INT_MAX. 0, the default: only blkhash_update(). */
int blkhash_opts_set_queue_depth(struct blkhash_opts *o, unsigned int queue_depth);

/* The construction "streams:N", N from 1 to 128. blkhash 0.8 had 32, 0.9 had 64. */
int blkhash_opts_set_streams(struct blkhash_opts *o, uint8_t streams);

/*
 * "flat", "streams", "streams:N", "concat" or "linear". It changes the checksum: blksum(1) says
 * what they are. "linear" is the digest of the content itself, which one thread computes.
 */
int blkhash_opts_set_construction(struct blkhash_opts *o, const char *construction);

/*
 * One implementation of the digest instead of the best one, by its name. It does not change the
 * checksum. ENOTSUP: this CPU cannot run it.
 */
int blkhash_opts_set_implementation(struct blkhash_opts *o, const char *implementation);

/* The name given to blkhash_opts_new(). It belongs to the options. */
const char *blkhash_opts_get_digest_name(const struct blkhash_opts *o);

uint32_t blkhash_opts_get_block_size(const struct blkhash_opts *o);

uint8_t blkhash_opts_get_threads(const struct blkhash_opts *o);

unsigned int blkhash_opts_get_queue_depth(const struct blkhash_opts *o);

/* N where the construction is "streams:N", 0 for others. */
uint8_t blkhash_opts_get_streams(const struct blkhash_opts *o);

#ifdef __cplusplus
}

inline struct blkhash *blkhash_new(size_t block_size, const char *digest_name)
{
    return blkhash_new_streams4(block_size, digest_name);
}
#else
/* The name is that of the function for as many arguments. */
#define blkhash_new(...) \
    BLKHASH_THIRD_(__VA_ARGS__, blkhash_new_streams4, blkhash_new, )(__VA_ARGS__)
#define BLKHASH_THIRD_(a, b, third, ...) third
#endif

#endif /* BLKHASH_H */
