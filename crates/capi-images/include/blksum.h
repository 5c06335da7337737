/* SPDX-License-Identifier: MIT OR Apache-2.0 */

/*
 * libblksum: checksums, block maps, checks and owners of disk images of any format
 *
 * This prints what `blksum disk.qcow2` prints:
 *
 *     struct blksum_error *error;
 *     struct blksum_image *image = blksum_image_open("disk.qcow2", NULL, &error);
 *     unsigned char md[BLKSUM_MAX_MD_SIZE];
 *     unsigned int len;
 *
 *     if (image == NULL ||
 *         blksum_image_checksum(image, NULL, NULL, NULL, md, &len, &error) != 0)
 *         fprintf(stderr, "%s\n", blksum_error_message(error));
 *
 * Errors. Functions that can fail return -1 or NULL then, and set *error to a new object with a kind
 * and a message, which the caller frees. On success they set *error to NULL. The argument may be NULL
 * if only the result matters. BLKSUM_ERROR_INTERNAL is a bug of the library.
 *
 * Objects. Functions that end with _free or _close take NULL. An object that was freed, or that is of
 * another type, is BLKSUM_ERROR_ARGUMENT, as long as its memory was not given to one of the next
 * thousands of objects. Strings that functions return belong to the object, and live as long.
 *
 * Threads. Any thread may use any object, and several at a time. An object may be freed while another
 * thread uses it: that call ends as if it was not. Callbacks run on the thread of the call that they
 * belong to. The library's own threads block signals, and end with the call, or with the image for
 * formats that qemu-nbd reads.
 *
 * fork(). An object belongs to the process that created it. In a child every call fails with
 * BLKSUM_ERROR_FORK, and freeing the object does nothing.
 *
 * Images are read only, by their own process and not in a sandbox as in the blksum command.
 *
 * The manual pages blksum(3), blksum-opts(3), blksum-map(3), blksum-check(3) and blksum-btrfs(3)
 * each have an example program.
 */

#ifndef BLKSUM_H
#define BLKSUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Length of the longest digest in bytes. */
#define BLKSUM_MAX_MD_SIZE 64

/* Returns the version of the library. */
const char *blksum_version(void);

/*
 * Errors
 */

/* The reason why a call failed. */
struct blksum_error;

/* Kinds of errors. Later versions may add some. */
enum blksum_error_kind {
    /* There is no error. */
    BLKSUM_ERROR_NONE = 0,

    /* A null pointer, a freed object, a value out of range, an option that does not exist. */
    BLKSUM_ERROR_ARGUMENT = 1,
    /* The object belongs to another process. */
    BLKSUM_ERROR_FORK = 2,
    /* The progress callback cancelled the work. */
    BLKSUM_ERROR_CANCELLED = 3,
    /* A bug of the library. */
    BLKSUM_ERROR_INTERNAL = 4,

    /* The system failed, and blksum_error_errno() says how: a file cannot be opened or read. */
    BLKSUM_ERROR_OPEN = 10,
    BLKSUM_ERROR_IO = 11,
    /* An NBD server cannot be reached, or does not answer as it should. */
    BLKSUM_ERROR_CONNECT = 12,
    BLKSUM_ERROR_SERVER = 13,
    /* The file is a directory, a pipe or something else that is no image. */
    BLKSUM_ERROR_FILE_TYPE = 14,
    /* The file does not have the format. */
    BLKSUM_ERROR_FORMAT = 15,
    /* The image is damaged, or ends too early. */
    BLKSUM_ERROR_CORRUPT = 16,
    BLKSUM_ERROR_TRUNCATED = 17,
    /* The image uses a feature that is not supported. */
    BLKSUM_ERROR_UNSUPPORTED = 18,
    /* The image refers to a file that it may not refer to. */
    BLKSUM_ERROR_REFERENCE = 19,
    /* There is no such snapshot or partition, or the range is not in the image. */
    BLKSUM_ERROR_PART = 20,
    /* Another process may write to the image. */
    BLKSUM_ERROR_IN_USE = 21,
    /* The image changed while it was read. */
    BLKSUM_ERROR_CHANGED = 22,
    /* The image claims more than the limits allow. */
    BLKSUM_ERROR_SIZE = 23,

    /* The file is no map, or is damaged. */
    BLKSUM_ERROR_MAP = 40,
    /* The map, or the maker of a map, does not know every block. */
    BLKSUM_ERROR_MAP_INCOMPLETE = 41,
    /* The map does not belong to the image, or two maps have other parameters. */
    BLKSUM_ERROR_MAP_MISMATCH = 42,
    /* The map is not sealed with the key. */
    BLKSUM_ERROR_MAP_SEAL = 43,
    /* More extents differ than the option "limit" allows. */
    BLKSUM_ERROR_LIMIT = 44,

    /* Anything else. */
    BLKSUM_ERROR_OTHER = 99
};

/* Returns the kind, or BLKSUM_ERROR_NONE if error is NULL. */
int blksum_error_kind(const struct blksum_error *error);

/* Returns the message, with the name of the file and without a line end. Never NULL. */
const char *blksum_error_message(const struct blksum_error *error);

/* Returns the errno value of the system, or 0. */
int blksum_error_errno(const struct blksum_error *error);

/* Writes the offset in the file of the error to *offset and returns 1, or returns 0 without one. */
int blksum_error_offset(const struct blksum_error *error, uint64_t *offset);

void blksum_error_free(struct blksum_error *error);

/*
 * Options
 *
 * One object has the options for all functions, each of which takes those that concern it. NULL means
 * the defaults. blksum-opts(3) lists all of them:
 *
 *     of an image     "format", "partition", "offset", "length" and others, by the names that the
 *                     commands have
 *     of a checksum   "digest", "construction", "block-size", "salt"
 *     of a map        "digest", "block-size", "salt", "key"
 *     of the work     "threads", "max-zeros", "limit"
 */
struct blksum_opts;

/* Creates options with the defaults. */
struct blksum_opts *blksum_opts_new(void);

void blksum_opts_free(struct blksum_opts *opts);

/* Sets an option to a word or a number in decimal. NULL is the default. */
int blksum_opts_set(struct blksum_opts *opts, const char *name, const char *value,
                    struct blksum_error **error);

/* Sets an option to a number. */
int blksum_opts_set_number(struct blksum_opts *opts, const char *name, uint64_t value,
                           struct blksum_error **error);

/* Sets "salt", "key" or "secret" to bytes. */
int blksum_opts_set_bytes(struct blksum_opts *opts, const char *name, const void *value, size_t size,
                          struct blksum_error **error);

/*
 * Images
 */

/* An open image as its guest sees it, or a part of it. */
struct blksum_image;

enum blksum_extent_kind {
    /* Bytes to read, which may be zeros. */
    BLKSUM_EXTENT_DATA = 0,
    /* Zeros, which are not stored. */
    BLKSUM_EXTENT_ZERO = 1
};

struct blksum_extent {
    uint64_t offset;
    uint64_t length;
    /* An enum blksum_extent_kind. */
    uint32_t kind;
    /* 0. */
    uint32_t reserved;
};

/*
 * Called on the thread of the call, at the beginning, a few times a second and at the end, with the
 * number of bytes done and their total, which is 0 while it is not known. Unless it returns 0, the work
 * is cancelled, if it is not at its end. It must return: no longjmp(), no exception.
 */
typedef int (*blksum_progress)(void *user_data, uint64_t done, uint64_t total);

/*
 * Opens an image: a path, the URI of an NBD server, or a disk of an appliance. Set "format" to "raw" for
 * raw disks of untrusted guests, and "follow" to "none" for other untrusted images.
 */
struct blksum_image *blksum_image_open(const char *name, const struct blksum_opts *opts,
                                       struct blksum_error **error);

void blksum_image_close(struct blksum_image *image);

/* Writes the size of the content in bytes to *size. */
int blksum_image_size(const struct blksum_image *image, uint64_t *size, struct blksum_error **error);

/* Returns the format, as in qemu-img, or NULL. */
const char *blksum_image_format(const struct blksum_image *image, struct blksum_error **error);

/*
 * Returns a message about an image that can be read, but may not be what it seems, or NULL after the
 * last one.
 */
const char *blksum_image_warning(const struct blksum_image *image, size_t index);

/*
 * Finds the extent that begins at offset, which is as long as possible. Returns 1, or 0 at the end of
 * the content.
 */
int blksum_image_extent(const struct blksum_image *image, uint64_t offset,
                        struct blksum_extent *extent, struct blksum_error **error);

/* Reads len bytes of the content. BLKSUM_ERROR_ARGUMENT: it ends before. */
int blksum_image_read(const struct blksum_image *image, void *buf, size_t len, uint64_t offset,
                      struct blksum_error **error);

/* Fails with BLKSUM_ERROR_CHANGED if the files of the image changed since they were opened. */
int blksum_image_check_unchanged(const struct blksum_image *image, struct blksum_error **error);

/*
 * Computes a checksum of the content, by default as the blksum command does. Writes it to md, which must
 * have room for BLKSUM_MAX_MD_SIZE bytes, and its length to *md_len.
 */
int blksum_image_checksum(const struct blksum_image *image, const struct blksum_opts *opts,
                          blksum_progress progress, void *user_data, unsigned char *md,
                          unsigned int *md_len, struct blksum_error **error);

/* The result of a comparison. Nothing but 0 means that the content is verified. */
enum blksum_verdict {
    BLKSUM_EQUAL = 0,
    BLKSUM_DIFFERENT = 1,
    /* A map does not know a block, or a value equals one that proves nothing. */
    BLKSUM_UNKNOWN = 2
};

/*
 * Finds out whether a value from elsewhere is a checksum of the image, as `blksum --expect`. It need not
 * say how it was computed: it is HEX, BASE64 or ALGORITHM:HEX, and "digest", "construction" and
 * "block-size" limit what is tried. Returns an enum blksum_verdict, or -1.
 *
 * If something equals the value, writes to tag how it was computed, as in check files, such as
 * "BLKSUM-SHA256-STREAMS4-64K", or "SHA256" for the bytes of the file. tag is cut off if tag_size is too
 * small, and may be NULL.
 *
 * BLKSUM_UNKNOWN: the content may have been made from the digests of other content, or is itself an
 * image of which the value may be. If "construction" is set, this is not asked.
 */
int blksum_image_expect(const struct blksum_image *image, const char *value,
                        const struct blksum_opts *opts, blksum_progress progress, void *user_data,
                        char *tag, size_t tag_size, struct blksum_error **error);

/*
 * Maps
 */

/* An open block map: the digest of every block of an image. */
struct blksum_map;

/* Opens a map, or an index of another program. If there is a "key", the map must be sealed with it. */
struct blksum_map *blksum_map_open(const char *path, const struct blksum_opts *opts,
                                   struct blksum_error **error);

void blksum_map_close(struct blksum_map *map);

/* Writes the size of the image in bytes to *size. */
int blksum_map_size(const struct blksum_map *map, uint64_t *size, struct blksum_error **error);

/* Writes the size of a block in bytes to *size. */
int blksum_map_block_size(const struct blksum_map *map, uint64_t *size, struct blksum_error **error);

/* Returns the name of the digest, or NULL. */
const char *blksum_map_digest_name(const struct blksum_map *map, struct blksum_error **error);

/* Returns 1 if the map knows every block, or 0. */
int blksum_map_is_complete(const struct blksum_map *map, struct blksum_error **error);

/*
 * Writes the digest of a block to md, which must have room for BLKSUM_MAX_MD_SIZE bytes, and its length
 * to *md_len. Returns 1, or 0 if the map does not know the block.
 */
int blksum_map_digest(const struct blksum_map *map, uint64_t block, unsigned char *md,
                      unsigned int *md_len, struct blksum_error **error);

/*
 * Compares len bytes of the content at offset with the map. They must be whole blocks, of which only the
 * last one of the image may be short. Returns an enum blksum_verdict, or -1. If it is not BLKSUM_EQUAL,
 * *block is set to the number of the first block that is the reason.
 */
int blksum_map_check(const struct blksum_map *map, const void *buf, size_t len, uint64_t offset,
                     uint64_t *block, struct blksum_error **error);

/* Compares zeros with the map, as blksum_map_check(), without a buffer. */
int blksum_map_check_zeros(const struct blksum_map *map, uint64_t offset, uint64_t len,
                           uint64_t *block, struct blksum_error **error);

/* Writes the map of an image to a new file, as `blkhash map create`. The file is removed on errors. */
int blksum_map_create(const char *path, const struct blksum_image *image,
                      const struct blksum_opts *opts, blksum_progress progress, void *user_data,
                      struct blksum_error **error);

/*
 * Differences
 */

/* The extents in which two contents differ, in order. */
struct blksum_diff;

enum blksum_difference_kind {
    BLKSUM_CHANGED = 0,
    /* The left side has data, and the right one zeros. */
    BLKSUM_ZEROED = 1,
    /* The left side has zeros, and the right one data. */
    BLKSUM_WRITTEN = 2,
    BLKSUM_LEFT_ONLY = 3,
    BLKSUM_RIGHT_ONLY = 4,
    /* One side does not know its blocks. */
    BLKSUM_NOT_KNOWN = 5,
    /* The blocks of one side cannot be read. */
    BLKSUM_UNREADABLE = 6
};

struct blksum_difference {
    uint64_t offset;
    uint64_t length;
    /* An enum blksum_difference_kind. */
    uint32_t kind;
    /* 0. */
    uint32_t reserved;
};

/* Compares an image with its map, which is the left side. */
struct blksum_diff *blksum_map_verify(const struct blksum_map *map, const struct blksum_image *image,
                                      const struct blksum_opts *opts, blksum_progress progress,
                                      void *user_data, struct blksum_error **error);

/* Compares two maps without their images. */
struct blksum_diff *blksum_map_diff(const struct blksum_map *left, const struct blksum_map *right,
                                    const struct blksum_opts *opts, struct blksum_error **error);

/* Compares the content of two images in blocks of "block-size". */
struct blksum_diff *blksum_image_diff(const struct blksum_image *left,
                                      const struct blksum_image *right,
                                      const struct blksum_opts *opts, blksum_progress progress,
                                      void *user_data, struct blksum_error **error);

/* Returns the number of extents, 0 if the contents are equal. Fails with -1. */
int64_t blksum_diff_count(const struct blksum_diff *diff, struct blksum_error **error);

/* Copies an extent to *difference. */
int blksum_diff_get(const struct blksum_diff *diff, size_t index, struct blksum_difference *difference,
                    struct blksum_error **error);

void blksum_diff_free(struct blksum_diff *diff);

/*
 * btrfs file systems
 */

/* The result of a verification of btrfs file systems. */
struct blksum_btrfs;

enum blksum_btrfs_category {
    /* Superblocks. */
    BLKSUM_BTRFS_SUPERBLOCK = 0,
    /* Tree blocks that do not match their checksum. */
    BLKSUM_BTRFS_TREE_CHECKSUM = 1,
    /* Tree blocks that do not match their reference. */
    BLKSUM_BTRFS_TREE_HEADER = 2,
    /* Tree blocks with an item that breaks a rule. */
    BLKSUM_BTRFS_TREE_ITEM = 3,
    /* Items that contradict each other. */
    BLKSUM_BTRFS_CONTRADICTION = 4,
    /* Data that does not match its checksum. */
    BLKSUM_BTRFS_DATA_CHECKSUM = 5,
    /* Data without the checksum that its file needs. */
    BLKSUM_BTRFS_NO_CHECKSUM = 6,
    /* Mirrors that differ, and nothing shows which one is correct. */
    BLKSUM_BTRFS_MIRROR = 7,
    /* Content that cannot be read. */
    BLKSUM_BTRFS_READ = 8,
    /* Parities that do not match. */
    BLKSUM_BTRFS_PARITY = 9
};

struct blksum_btrfs_finding {
    /* What is wrong: "superblock", "tree block", "data" and so on. */
    const char *subject;
    /* How it is wrong. */
    const char *reason;
    /* The name of the device, or NULL. */
    const char *device;
    /* The offset on the device, or UINT64_MAX. */
    uint64_t offset;
    /* The address in the file system, or UINT64_MAX. */
    uint64_t logical;
    /* The length in bytes, and the number of adjacent blocks that it has. */
    uint64_t length;
    uint64_t blocks;
    /* An enum blksum_btrfs_category. */
    uint32_t category;
    /* The number of the mirror from 1, or 0, and how many there are. */
    uint32_t mirror;
    uint32_t mirrors;
    /* 0. */
    uint32_t reserved;
};

/*
 * Verifies every checksum and the structure of the btrfs file systems in count images, as
 * `blkhash btrfs verify`. A file system on several devices needs all of them, in any order. Findings are
 * no errors. It is an error if there is no file system that can be verified. "limit" is the number of
 * findings that are kept, 100 by default.
 */
struct blksum_btrfs *blksum_btrfs_verify(const struct blksum_image *const *images, size_t count,
                                         const struct blksum_opts *opts, blksum_progress progress,
                                         void *user_data, struct blksum_error **error);

/*
 * Returns BLKSUM_EQUAL, which is 0, if all is as it was written, BLKSUM_DIFFERENT if something is not,
 * BLKSUM_UNKNOWN if something could not be verified, or -1.
 */
int blksum_btrfs_verdict(const struct blksum_btrfs *btrfs, struct blksum_error **error);

/* Returns the number of wrong blocks of an enum blksum_btrfs_category in all file systems, or -1. */
int64_t blksum_btrfs_wrong(const struct blksum_btrfs *btrfs, int category,
                           struct blksum_error **error);

/* Returns the number of findings that were kept, or -1. */
int64_t blksum_btrfs_count(const struct blksum_btrfs *btrfs, struct blksum_error **error);

/* Copies a finding to *finding. Its strings belong to btrfs. */
int blksum_btrfs_get(const struct blksum_btrfs *btrfs, size_t index,
                     struct blksum_btrfs_finding *finding, struct blksum_error **error);

/*
 * Returns the name of a file that a finding affects, from the top of the file system, or NULL after the
 * last one. At most 16 files have names, each by up to 8 links.
 */
const char *blksum_btrfs_file(const struct blksum_btrfs *btrfs, size_t index, size_t file);

/* Returns a message about something that could not be verified, or NULL after the last one. */
const char *blksum_btrfs_problem(const struct blksum_btrfs *btrfs, size_t index);

void blksum_btrfs_free(struct blksum_btrfs *btrfs);

/*
 * Checks
 */

/* The result of a check of an image. */
struct blksum_check;

struct blksum_check_layer {
    /* Where the layer is: "image", "disk", "partition 2", "partition 2: LV root" and so on. */
    const char *place;
    /* What it is, such as "qcow2" or "ext4", or "unknown". */
    const char *kind;
    /* Its label or name, and its UUID or serial number, or NULL. */
    const char *label;
    const char *uuid;
    /* The part of the disk that it is in. */
    uint64_t offset;
    uint64_t length;
    /* The number of structures whose checksums match, and the bytes that these cover. */
    uint64_t verified;
    uint64_t verified_bytes;
    /* The bytes of content without a checksum, or UINT64_MAX if they are not known. */
    uint64_t unprotected_bytes;
    /* The numbers of findings of each enum blksum_check_problem. */
    uint64_t mismatches;
    uint64_t damaged;
    uint64_t unreadable;
    uint64_t skipped;
    /*
     * If the place is "image": clusters that nothing uses, which waste space and are no damage, and
     * reference counts that are computed anew when the image is next opened for writing. Otherwise
     * UINT64_MAX.
     */
    uint64_t leaks;
    uint64_t outdated;
    /* The number of the partition that the layer is all of, or 0. */
    uint32_t partition;
    /* An enum blksum_verdict, as blksum_check_verdict(). */
    uint32_t verdict;
};

enum blksum_check_problem {
    /* A checksum does not match. */
    BLKSUM_CHECK_MISMATCH = 0,
    /* Bytes violate the rules of the layer. */
    BLKSUM_CHECK_DAMAGED = 1,
    /* Something cannot be read. */
    BLKSUM_CHECK_UNREADABLE = 2,
    /* Something was not verified: a limit was reached, or a feature is not read. */
    BLKSUM_CHECK_SKIPPED = 3
};

struct blksum_check_finding {
    /* The name of the structure. */
    const char *structure;
    /* What is wrong with it. */
    const char *reason;
    /* The index of its layer. */
    uint64_t layer;
    /* Its offset in the content, or if the place of the layer is "image", in its file. */
    uint64_t offset;
    /* Its offset in the layer. */
    uint64_t layer_offset;
    /* Its length in bytes, 0 if it is not known. */
    uint64_t length;
    /* The number of the inode or file record that it belongs to, or UINT64_MAX. */
    uint64_t object;
    /* The number of findings that it stands for. */
    uint64_t count;
    /* An enum blksum_check_problem. */
    uint32_t problem;
    /* 0. */
    uint32_t reserved;
};

/*
 * Verifies, layer by layer, every checksum that an image holds of itself, as `blkhash check`: reference
 * counts, partition tables, volumes, hash trees and file systems. Findings are no errors. "limit" is the
 * number of findings that are kept, 100 by default.
 */
struct blksum_check *blksum_image_check(const struct blksum_image *image,
                                        const struct blksum_opts *opts, blksum_progress progress,
                                        void *user_data, struct blksum_error **error);

/*
 * Returns BLKSUM_EQUAL, which is 0, if all checksums match, BLKSUM_DIFFERENT if one does not or something
 * is damaged, BLKSUM_UNKNOWN if something could not be verified, or -1.
 */
int blksum_check_verdict(const struct blksum_check *check, struct blksum_error **error);

/* Returns the number of layers, at least 1, or -1. */
int64_t blksum_check_layers(const struct blksum_check *check, struct blksum_error **error);

/* Copies a layer to *layer. Its strings belong to check. */
int blksum_check_layer(const struct blksum_check *check, size_t index,
                       struct blksum_check_layer *layer, struct blksum_error **error);

/* Returns a sentence about a layer, or NULL after the last one. */
const char *blksum_check_remark(const struct blksum_check *check, size_t layer, size_t index);

/* Returns the number of findings that were kept, or -1. */
int64_t blksum_check_count(const struct blksum_check *check, struct blksum_error **error);

/* Copies a finding to *finding. Its strings belong to check. */
int blksum_check_get(const struct blksum_check *check, size_t index,
                     struct blksum_check_finding *finding, struct blksum_error **error);

/* Returns the name of one of at most 16 files that a finding affects, or NULL after the last one. */
const char *blksum_check_file(const struct blksum_check *check, size_t index, size_t file);

void blksum_check_free(struct blksum_check *check);

/*
 * Owners
 */

/* The extents of an image, in order, and what they belong to. */
struct blksum_owners;

enum blksum_owner_kind {
    /* Content of a file. */
    BLKSUM_OWNER_FILE = 0,
    /* Metadata of a file system, directories included. */
    BLKSUM_OWNER_METADATA = 1,
    BLKSUM_OWNER_JOURNAL = 2,
    /* Free space of a file system. */
    BLKSUM_OWNER_FREE = 3,
    BLKSUM_OWNER_UNKNOWN = 4
};

struct blksum_owned {
    /* The kind of the file system, such as "ext4", or NULL. */
    const char *file_system;
    /* The name of a structure of metadata, such as "directory" or "inode table", or NULL. */
    const char *structure;
    uint64_t offset;
    uint64_t length;
    /* The number of the inode or file record, or UINT64_MAX. */
    uint64_t object;
    /* The offset of the first byte in the content of the file, or UINT64_MAX. */
    uint64_t file_offset;
    /* An enum blksum_owner_kind. */
    uint32_t kind;
    /* The number of the partition, or 0. */
    uint32_t partition;
};

/*
 * Finds which file or structure length bytes at offset belong to, as `blkhash owners`. A length of
 * UINT64_MAX is up to the end. Bytes that several files share are in an extent for each. Of btrfs, at
 * most 1 GiB of data is looked up. It is an error if there is no file system that is read, and if there are more
 * extents than "limit".
 */
struct blksum_owners *blksum_image_owners(const struct blksum_image *image, uint64_t offset,
                                          uint64_t length, const struct blksum_opts *opts,
                                          struct blksum_error **error);

/* Returns the number of extents, or -1. */
int64_t blksum_owners_count(const struct blksum_owners *owners, struct blksum_error **error);

/* Copies an extent to *owned. Its strings belong to owners. */
int blksum_owners_get(const struct blksum_owners *owners, size_t index, struct blksum_owned *owned,
                      struct blksum_error **error);

/* Returns a name of the file of an extent, from the top of the file system, or NULL after the last one. */
const char *blksum_owners_name(const struct blksum_owners *owners, size_t index, size_t name);

/* Returns a message about the state of a file system, or NULL after the last one. */
const char *blksum_owners_remark(const struct blksum_owners *owners, size_t index);

void blksum_owners_free(struct blksum_owners *owners);

/*
 * Maps of content that comes in any order
 */

/* Collects the digests of the blocks of an image. They wait in a temporary file. */
struct blksum_maker;

/* Begins the map of an image of size bytes. */
struct blksum_maker *blksum_maker_new(uint64_t size, const struct blksum_opts *opts,
                                      struct blksum_error **error);

void blksum_maker_free(struct blksum_maker *maker);

/*
 * Adds len bytes of the content at offset, which must be whole blocks, of which only the last one of the
 * image may be short. Blocks may come more than once, with the same content.
 */
int blksum_maker_add(const struct blksum_maker *maker, const void *buf, size_t len, uint64_t offset,
                     struct blksum_error **error);

/* Adds zeros, as blksum_maker_add(), without a buffer. */
int blksum_maker_add_zeros(const struct blksum_maker *maker, uint64_t offset, uint64_t len,
                           struct blksum_error **error);

/* Writes the number of blocks that did not come yet to *blocks. */
int blksum_maker_left(const struct blksum_maker *maker, uint64_t *blocks,
                      struct blksum_error **error);

/*
 * Writes the map to a new file, which appears at path when it is complete. BLKSUM_ERROR_MAP_INCOMPLETE: a
 * block did not come. BLKSUM_ERROR_CHANGED: a block came with two contents.
 */
int blksum_maker_write(const struct blksum_maker *maker, const char *path,
                       struct blksum_error **error);

#ifdef __cplusplus
}
#endif

#endif /* BLKSUM_H */
