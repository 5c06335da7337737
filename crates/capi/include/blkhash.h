/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * libblkhash: checksums of disk images
 *
 * blkhash_new() has two forms, from two generations of this interface. Their checksums differ:
 *
 *     blkhash_new(64 * 1024, "sha256")   construction "streams:4": as in the blksum command, and
 *                                        in blkhash 0.3 to 0.7; also blkhash_new_streams4()
 *     blkhash_new()                      construction "flat": as in blkhash 0.10 and later
 *
 * This computes what blksum prints:
 *
 *     struct blkhash *h = blkhash_new_streams4(64 * 1024, "sha256");
 *
 *     blkhash_update(h, data, data_len);
 *     blkhash_zero(h, hole_len);
 *     blkhash_final(h, md, &md_len);
 *     blkhash_free(h);
 *
 * The content is cut into blocks of 64 KiB by default, each block is hashed, and the construction
 * computes the checksum from the digests of the blocks. The value depends only on the content, the
 * digest, the block size and the construction. It does not depend on how the content is split into
 * calls, on whether zeros come as data or with blkhash_zero(), or on the number of threads.
 *
 * Errors. Unless noted otherwise, functions that return int return 0 or an errno value.
 * Constructors return NULL and set errno. EINVAL means a null pointer, a value out of range, or a
 * hash that was finalized or belongs to the parent process. After an error of a hash all later
 * calls fail with the same error, because its content has a gap. The exception is EAGAIN.
 *
 * Threads. A hash may be used from any thread. Concurrent calls wait for each other, and the caller
 * is responsible for the order of the content. The library's own threads start when there is work
 * for them, block signals, and end with the hash.
 *
 * fork(). A hash belongs to the process that created it. In a child every call fails with EINVAL,
 * and blkhash_free() does not free the memory.
 *
 * The manual pages blkhash(3), blkhash-opts(3) and blkhash-aio(3) each have an example program.
 */

#ifndef BLKHASH_H
#define BLKHASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Length of the longest digest in bytes. */
#define BLKHASH_MAX_MD_SIZE 64

/* A hash in progress. */
struct blkhash;

/* The options of a hash. */
struct blkhash_opts;

/*
 * Creates a hash with sha256, blocks of 64 KiB, 4 threads and the construction "flat", as in
 * blkhash 0.10 and later.
 *
 * With two arguments, blkhash_new(block_size, digest_name) calls blkhash_new_streams4(). Form and
 * value are as in blkhash 0.3 to 0.7, and "streams:4" is the default of the blksum command.
 */
struct blkhash *blkhash_new(void);

/* Creates a hash with the construction "streams:4". EINVAL: block size or digest are invalid. */
struct blkhash *blkhash_new_streams4(size_t block_size, const char *digest_name);

/* Creates a hash with these options, which may be changed or freed afterwards. */
struct blkhash *blkhash_new_opts(const struct blkhash_opts *opts);

/*
 * Appends len bytes to the content. Blocks of zeros are detected and not hashed. The bytes are
 * copied, unless there are many. In that case the call returns when they are hashed.
 *
 * EOVERFLOW: the content would be longer than 2^64 - 1 bytes.
 */
int blkhash_update(struct blkhash *h, const void *buf, size_t len);

/*
 * Appends len zero bytes to the content, so that ranges known to be zero need not be read. The time
 * is proportional to len, about 15 nanoseconds per block. With "linear" zeros take as long as other
 * bytes, unless the digest is a CRC.
 */
int blkhash_zero(struct blkhash *h, size_t len);

/*
 * Ends the content and writes its checksum to md_value, which must have room for
 * BLKHASH_MAX_MD_SIZE bytes. If md_len is not NULL, it is set to the length of the checksum.
 *
 * A second call fails with EINVAL. ENOTRECOVERABLE from any function is a bug of the library.
 */
int blkhash_final(struct blkhash *h, unsigned char *md_value, unsigned int *md_len);

/* Frees a hash, finalized or not, and ends its threads. This returns all lent buffers. */
void blkhash_free(struct blkhash *h);

/*
 * Returns the implementation that hashes the blocks on this CPU, such as "sha256-avx512-x16". The
 * string belongs to the hash.
 */
const char *blkhash_implementation(const struct blkhash *h);

/*
 * Writes the names of up to count digests to names, and returns their number. If names is NULL,
 * returns the number of all digests.
 */
size_t blkhash_digests(const char **names, size_t count);

/* Returns the version of the library. */
const char *blkhash_version(void);

/*
 * Asynchronous updates
 *
 * The buffer is lent until the completion of the update was fetched. It is hashed in place without
 * waiting, and only partial blocks at its ends are copied. The content is in the order of the
 * calls, including calls of blkhash_update() and blkhash_zero(). Updates complete in any order.
 */

struct blkhash_completion {
    /* The user_data of blkhash_aio_update(). */
    void *user_data;

    /* 0, or an errno value. */
    int error;
};

/*
 * Lends len bytes to the hash and appends them to the content. An update is in flight from this
 * call until its completion was fetched. The queue depth limits the number of updates in flight.
 *
 * EAGAIN: the limit is reached and nothing was appended. Fetch completions and call again.
 * ENOTSUP: the options have no queue depth.
 */
int blkhash_aio_update(struct blkhash *h, const void *buf, size_t len, void *user_data);

/*
 * Returns a file descriptor that becomes readable when there may be completions. It is an eventfd
 * on Linux and a pipe elsewhere, and does not block. Read its 8 bytes, then fetch the completions. It
 * belongs to the hash.
 * Returns a negative errno value on errors: -ENOTSUP if the options have no queue depth.
 */
int blkhash_aio_completion_fd(struct blkhash *h);

/*
 * Fetches up to count completions. Returns their number, which may be 0, or a negative errno value.
 * After an error of the hash, only blkhash_free() returns the buffers.
 */
int blkhash_aio_completions(struct blkhash *h, struct blkhash_completion *out, unsigned int count);

/*
 * Options
 *
 * Setters return EINVAL for a value that is not allowed, and keep the earlier value. If o is NULL,
 * getters return 0 or NULL and set errno.
 */

/*
 * Creates options with the defaults of blkhash_new() for a digest, given by its name in
 * blkhash_digests() or an alias. EINVAL: the digest is unknown or not allowed for checksums.
 */
struct blkhash_opts *blkhash_opts_new(const char *digest_name);

void blkhash_opts_free(struct blkhash_opts *o);

/* Sets the block size, a power of two from 512 bytes to 64 MiB. It changes the checksum. */
int blkhash_opts_set_block_size(struct blkhash_opts *o, uint32_t block_size);

/*
 * Sets the number of threads that hash at the same time, 1 to 255. The caller's thread is one of
 * them while it waits in blkhash_update(). It does not change the checksum.
 */
int blkhash_opts_set_threads(struct blkhash_opts *o, uint8_t threads);

/*
 * Sets the maximum number of asynchronous updates in flight, up to INT_MAX. With the default 0 only
 * blkhash_update() can be used.
 */
int blkhash_opts_set_queue_depth(struct blkhash_opts *o, unsigned int queue_depth);

/* Sets the construction "streams:N", N from 1 to 128. blkhash 0.8 used 32, and 0.9 used 64. */
int blkhash_opts_set_streams(struct blkhash_opts *o, uint8_t streams);

/*
 * Sets the construction: "flat", "streams", "streams:N", "concat", "linear", "fs-verity" or
 * "dm-verity". It changes the checksum. blksum(1) describes them. "linear" is the plain digest of the
 * content, computed by one thread. "fs-verity" and "dm-verity" have blocks of 4096 bytes unless
 * blkhash_opts_set_block_size() sets another size, and are not defined for every digest:
 * blkhash_new_opts() fails with EINVAL. "dm-verity" is defined for one whole block or more:
 * blkhash_final() fails with EINVAL after other content.
 */
int blkhash_opts_set_construction(struct blkhash_opts *o, const char *construction);

/*
 * Sets the salt of "fs-verity" (up to 32 bytes) or "dm-verity" (up to 256 bytes). It changes the
 * checksum. With a salt that is too long, or with another construction, blkhash_new_opts() fails with
 * EINVAL. A size of 0 removes the salt.
 */
int blkhash_opts_set_salt(struct blkhash_opts *o, const void *salt, size_t size);

/*
 * Selects one implementation of the digest by name instead of the best one. It does not change the
 * checksum. ENOTSUP: this CPU cannot run it.
 */
int blkhash_opts_set_implementation(struct blkhash_opts *o, const char *implementation);

/* Returns the name given to blkhash_opts_new(). The string belongs to the options. */
const char *blkhash_opts_get_digest_name(const struct blkhash_opts *o);

uint32_t blkhash_opts_get_block_size(const struct blkhash_opts *o);

uint8_t blkhash_opts_get_threads(const struct blkhash_opts *o);

unsigned int blkhash_opts_get_queue_depth(const struct blkhash_opts *o);

/* Returns N if the construction is "streams:N", or 0. */
uint8_t blkhash_opts_get_streams(const struct blkhash_opts *o);

#ifdef __cplusplus
}

inline struct blkhash *blkhash_new(size_t block_size, const char *digest_name)
{
    return blkhash_new_streams4(block_size, digest_name);
}
#else
/* Selects the function by the number of arguments. */
#define blkhash_new(...) \
    BLKHASH_THIRD_(__VA_ARGS__, blkhash_new_streams4, blkhash_new, )(__VA_ARGS__)
#define BLKHASH_THIRD_(a, b, third, ...) third
#endif

#endif /* BLKHASH_H */
