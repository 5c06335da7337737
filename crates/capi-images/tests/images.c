/* Images, maps and their verbs. Runs in an empty folder. */

#include "common.h"

/* 1 MiB and 1000 bytes: text, zeros, and a short block at the end. */
#define SIZE (MIB + 1000)
#define BLOCKS 17

static unsigned char content[SIZE];

static int set_up(void **state)
{
    (void)state;
    memset(content, 0, sizeof content);
    for (size_t i = 0; i < 200000; i++)
        content[i] = (unsigned char)('a' + i % 23);
    memset(content + MIB, 'z', 1000);
    write_file("disk.img", content, sizeof content);
    unlink("disk.blkmap");
    return 0;
}

static void versions_agree(void **state)
{
    (void)state;
    assert_string_equal(blksum_version(), EXPECTED_VERSION);
}

static void content_is_read(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_error *error;
    static unsigned char buf[SIZE];
    uint64_t size = 0;

    (void)state;
    assert_int_equal(blksum_image_size(image, &size, &error), 0);
    assert_int_equal(size, SIZE);
    assert_string_equal(blksum_image_format(image, &error), "raw");
    assert_null(blksum_image_warning(image, 1000));
    assert_int_equal(blksum_image_read(image, buf, SIZE, 0, &error), 0);
    assert_memory_equal(buf, content, SIZE);
    assert_int_equal(blksum_image_read(image, buf, 7, SIZE - 7, &error), 0);
    assert_memory_equal(buf, "zzzzzzz", 7);
    assert_int_equal(blksum_image_read(image, NULL, 0, SIZE, &error), 0);
    assert_int_equal(blksum_image_read(image, buf, 8, SIZE - 7, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "past the end");
    assert_int_equal(blksum_image_read(image, buf, 1, UINT64_MAX, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "past the end");
    assert_int_equal(blksum_image_check_unchanged(image, &error), 0);
    blksum_image_close(image);
}

static void extents_cover_the_content(void **state)
{
    struct blksum_image *image;
    struct blksum_error *error;
    struct blksum_extent extent;
    uint64_t at = 0, zeros = 0;
    int found;

    (void)state;
    assert_int_equal(truncate("disk.img", 8 * MIB), 0);
    image = open_image("disk.img", NULL);
    while ((found = blksum_image_extent(image, at, &extent, &error)) == 1) {
        assert_int_equal(extent.offset, at);
        assert_true(extent.length > 0);
        if (extent.kind == BLKSUM_EXTENT_ZERO)
            zeros += extent.length;
        at += extent.length;
    }
    assert_no_error(error);
    assert_int_equal(found, 0);
    assert_int_equal(at, 8 * MIB);
    assert_true(zeros >= 6 * MIB || zeros == 0);
    blksum_image_close(image);
}

static void checksum(const struct blksum_image *image, const struct blksum_opts *opts, char *hex)
{
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    struct blksum_error *error;
    unsigned int len;

    blksum_image_checksum(image, opts, NULL, NULL, md, &len, &error);
    assert_no_error(error);
    to_hex(md, len, hex);
}

struct calls {
    int count, cancel_at;
    uint64_t done, total;
    pthread_t thread;
};

static int count_calls(void *user_data, uint64_t done, uint64_t total)
{
    struct calls *calls = (struct calls *)user_data;

    if (!pthread_equal(pthread_self(), calls->thread))
        abort();
    calls->done = done;
    calls->total = total;
    return ++calls->count == calls->cancel_at;
}

static void progress_is_reported(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_error *error;
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    struct calls calls = {0, 0, 0, 0, pthread_self()};

    (void)state;
    assert_int_equal(
        blksum_image_checksum(image, NULL, count_calls, &calls, md, NULL, &error), 0);
    assert_true(calls.count >= 2);
    assert_int_equal(calls.done, SIZE);
    assert_int_equal(calls.total, SIZE);

    calls.count = 0;
    calls.cancel_at = 1;
    assert_int_equal(
        blksum_image_checksum(image, NULL, count_calls, &calls, md, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_CANCELLED, "cancelled");
    calls.count = 0;
    assert_int_equal(
        blksum_map_create("cancelled.blkmap", image, NULL, count_calls, &calls, &error), -1);
    assert_error(error, BLKSUM_ERROR_CANCELLED, "cancelled");
    assert_int_equal(access("cancelled.blkmap", F_OK), -1);
    blksum_image_close(image);
}

static void values_are_found(void **state)
{
    static const char *const constructions[] = {"streams:4", "streams:32", "flat", "concat",
                                                "linear"};
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_error *error;
    char hex[HEX_SIZE], tag[100];

    (void)state;
    for (size_t i = 0; i < sizeof constructions / sizeof constructions[0]; i++) {
        struct blksum_opts *opts = opts_with("construction", constructions[i]);

        checksum(image, opts, hex);
        assert_int_equal(blksum_image_expect(image, hex, NULL, NULL, NULL, tag, sizeof tag, &error),
                         BLKSUM_EQUAL);
        assert_non_null(strstr(tag, "SHA256"));
        /* A tag that does not fit is cut off. */
        assert_int_equal(blksum_image_expect(image, hex, NULL, NULL, NULL, tag, 4, &error),
                         BLKSUM_EQUAL);
        assert_int_equal(strlen(tag), 3);
        hex[0] = hex[0] == '0' ? '1' : '0';
        assert_int_equal(blksum_image_expect(image, hex, NULL, NULL, NULL, tag, sizeof tag, &error),
                         BLKSUM_DIFFERENT);
        assert_string_equal(tag, "");
        blksum_opts_free(opts);
    }
    assert_int_equal(blksum_image_expect(image, "x", NULL, NULL, NULL, NULL, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "value");
    blksum_image_close(image);
}

/* The digest of a file that holds two digests could belong to another image. */
static void lists_of_digests_are_not_equal(void **state)
{
    unsigned char list[64];
    struct blksum_opts *linear = opts_with("construction", "linear");
    struct blksum_image *image;
    struct blksum_error *error;
    char hex[HEX_SIZE], tag[100];

    (void)state;
    for (size_t i = 0; i < sizeof list; i++)
        list[i] = (unsigned char)(i * 181 + 77);
    write_file("list", list, sizeof list);
    image = open_image("list", NULL);
    checksum(image, linear, hex);
    assert_int_equal(blksum_image_expect(image, hex, NULL, NULL, NULL, tag, sizeof tag, &error),
                     BLKSUM_UNKNOWN);
    assert_non_null(strstr(tag, "LINEAR"));
    assert_int_equal(blksum_image_expect(image, hex, linear, NULL, NULL, tag, sizeof tag, &error),
                     BLKSUM_EQUAL);
    blksum_opts_free(linear);
    blksum_image_close(image);
}

static void parts_are_selected(void **state)
{
    struct blksum_opts *opts = blksum_opts_new();
    struct blksum_image *image;
    struct blksum_error *error;
    unsigned char buf[10];
    uint64_t size;

    (void)state;
    assert_int_equal(blksum_opts_set_number(opts, "offset", 46, &error), 0);
    assert_int_equal(blksum_opts_set(opts, "length", "10", &error), 0);
    image = open_image("disk.img", opts);
    assert_int_equal(blksum_image_size(image, &size, &error), 0);
    assert_int_equal(size, 10);
    assert_int_equal(blksum_image_read(image, buf, 10, 0, &error), 0);
    assert_memory_equal(buf, "abcdefghij", 10);
    blksum_image_close(image);

    assert_int_equal(blksum_opts_set_number(opts, "length", SIZE, &error), 0);
    assert_null(blksum_image_open("disk.img", opts, &error));
    assert_error(error, BLKSUM_ERROR_PART, "disk.img");
    assert_int_equal(blksum_opts_set_number(opts, "partition", 1, &error), 0);
    assert_null(blksum_image_open("disk.img", opts, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "partition");
    assert_int_equal(blksum_opts_set(opts, "offset", NULL, &error), 0);
    assert_int_equal(blksum_opts_set(opts, "length", NULL, &error), 0);
    assert_null(blksum_image_open("disk.img", opts, &error));
    assert_error(error, BLKSUM_ERROR_PART, "partition");
    blksum_opts_free(opts);
}

static void assert_same(const struct blksum_map *map, uint64_t offset, size_t len)
{
    struct blksum_error *error;

    assert_int_equal(blksum_map_check(map, content + offset, len, offset, NULL, &error),
                     BLKSUM_EQUAL);
}

static void maps_know_their_image(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_map *map;
    struct blksum_diff *diff;
    struct blksum_difference found;
    struct blksum_error *error;
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    unsigned int len;
    uint64_t value, block = 99;

    (void)state;
    assert_int_equal(blksum_map_create("disk.blkmap", image, NULL, NULL, NULL, &error), 0);
    assert_int_equal(blksum_map_create("disk.blkmap", image, NULL, NULL, NULL, &error), -1);
    assert_int_equal(blksum_error_errno(error), EEXIST);
    assert_error(error, BLKSUM_ERROR_OPEN, "disk.blkmap");
    map = open_map("disk.blkmap", NULL);
    assert_int_equal(blksum_map_size(map, &value, &error), 0);
    assert_int_equal(value, SIZE);
    assert_int_equal(blksum_map_block_size(map, &value, &error), 0);
    assert_int_equal(value, 64 * KIB);
    assert_string_equal(blksum_map_digest_name(map, &error), "sha256");
    assert_int_equal(blksum_map_is_complete(map, &error), 1);
    assert_int_equal(blksum_map_digest(map, BLOCKS - 1, md, &len, &error), 1);
    assert_int_equal(len, 32);
    assert_int_equal(blksum_map_digest(map, BLOCKS, md, &len, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no block 17");

    assert_same(map, 0, SIZE);
    assert_same(map, 64 * KIB, 3 * 64 * KIB);
    assert_same(map, MIB, 1000);
    assert_same(map, 0, 0);
    content[70000] ^= 1;
    assert_int_equal(blksum_map_check(map, content, SIZE, 0, &block, &error), BLKSUM_DIFFERENT);
    assert_int_equal(block, 1);
    assert_same(map, 128 * KIB, SIZE - 128 * KIB);
    assert_int_equal(blksum_map_check_zeros(map, 512 * KIB, 512 * KIB, &block, &error),
                     BLKSUM_EQUAL);
    assert_int_equal(blksum_map_check_zeros(map, 512 * KIB, 512 * KIB + 1000, &block, &error),
                     BLKSUM_DIFFERENT);
    assert_int_equal(block, 16);
    assert_int_equal(blksum_map_check(map, content, 1000, 0, &block, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "whole blocks");

    diff = blksum_map_verify(map, image, NULL, NULL, NULL, &error);
    assert_int_equal(blksum_diff_count(diff, &error), 0);
    blksum_diff_free(diff);
    blksum_image_close(image);

    write_file("disk.img", content, sizeof content);
    image = open_image("disk.img", NULL);
    diff = blksum_map_verify(map, image, NULL, NULL, NULL, &error);
    assert_int_equal(blksum_diff_count(diff, &error), 1);
    assert_int_equal(blksum_diff_get(diff, 0, &found, &error), 0);
    assert_int_equal(found.offset, 64 * KIB);
    assert_int_equal(found.length, 64 * KIB);
    assert_int_equal(found.kind, BLKSUM_CHANGED);
    assert_int_equal(blksum_diff_get(diff, 1, &found, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "difference 1 of 1");
    blksum_diff_free(diff);
    blksum_map_close(map);
    blksum_image_close(image);
}

static void contents_are_compared(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL), *other;
    struct blksum_map *map, *other_map;
    struct blksum_diff *diff;
    struct blksum_difference found;
    struct blksum_opts *opts = opts_with("limit", "1");
    struct blksum_error *error;

    (void)state;
    content[0] ^= 1;
    memset(content + 128 * KIB, 0, 64 * KIB);
    write_file("other.img", content, SIZE - 1000);
    other = open_image("other.img", NULL);
    unlink("a.blkmap");
    unlink("b.blkmap");
    assert_int_equal(blksum_map_create("a.blkmap", image, NULL, NULL, NULL, &error), 0);
    assert_int_equal(blksum_map_create("b.blkmap", other, NULL, NULL, NULL, &error), 0);
    map = open_map("a.blkmap", NULL);
    other_map = open_map("b.blkmap", NULL);
    for (int i = 0; i < 2; i++) {
        diff = i == 0 ? blksum_image_diff(image, other, NULL, NULL, NULL, &error)
                      : blksum_map_diff(map, other_map, NULL, &error);
        assert_int_equal(blksum_diff_count(diff, &error), 3);
        assert_int_equal(blksum_diff_get(diff, 0, &found, &error), 0);
        assert_int_equal(found.kind, BLKSUM_CHANGED);
        assert_int_equal(blksum_diff_get(diff, 1, &found, &error), 0);
        assert_int_equal(found.kind, BLKSUM_ZEROED);
        assert_int_equal(blksum_diff_get(diff, 2, &found, &error), 0);
        assert_int_equal(found.kind, BLKSUM_LEFT_ONLY);
        assert_int_equal(found.offset, MIB);
        assert_int_equal(found.length, 1000);
        blksum_diff_free(diff);
    }
    assert_null(blksum_map_diff(map, other_map, opts, &error));
    assert_error(error, BLKSUM_ERROR_LIMIT, "limit");
    blksum_opts_free(opts);
    blksum_map_close(map);
    blksum_map_close(other_map);
    blksum_image_close(image);
    blksum_image_close(other);
}

/* The seal covers what was there when the map was opened. */
static void an_overwritten_map_is_an_error(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL), *other;
    struct blksum_map *map;
    struct blksum_diff *diff;
    struct blksum_error *error;
    static unsigned char bytes[MIB];
    size_t size;
    FILE *file;

    (void)state;
    content[0] ^= 1;
    write_file("other.img", content, SIZE);
    other = open_image("other.img", NULL);
    unlink("a.blkmap");
    unlink("b.blkmap");
    assert_int_equal(blksum_map_create("a.blkmap", image, NULL, NULL, NULL, &error), 0);
    assert_int_equal(blksum_map_create("b.blkmap", other, NULL, NULL, NULL, &error), 0);
    map = open_map("a.blkmap", NULL);
    for (int i = 0; i < 2; i++) {
        diff = blksum_map_verify(map, other, NULL, NULL, NULL, &error);
        assert_int_equal(blksum_diff_count(diff, &error), 1);
        blksum_diff_free(diff);
    }
    file = fopen("b.blkmap", "rb");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    write_file("a.blkmap", bytes, size);
    assert_null(blksum_map_verify(map, other, NULL, NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_MAP, "a.blkmap");
    blksum_map_close(map);
    blksum_image_close(image);
    blksum_image_close(other);
}

static void keys_seal_maps(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_opts *opts = blksum_opts_new();
    struct blksum_error *error;

    (void)state;
    unlink("sealed.blkmap");
    assert_int_equal(blksum_opts_set_bytes(opts, "key", "0123456789abcdef", 16, &error), 0);
    assert_int_equal(blksum_map_create("sealed.blkmap", image, opts, NULL, NULL, &error), 0);
    blksum_map_close(open_map("sealed.blkmap", opts));
    blksum_map_close(open_map("sealed.blkmap", NULL));
    assert_int_equal(blksum_opts_set_bytes(opts, "key", "0123456789abcdeF", 16, &error), 0);
    assert_null(blksum_map_open("sealed.blkmap", opts, &error));
    assert_error(error, BLKSUM_ERROR_MAP_SEAL, "sealed.blkmap");
    blksum_opts_free(opts);
    blksum_image_close(image);
}

static void maps_are_made_in_any_order(void **state)
{
    static const unsigned order[BLOCKS] = {16, 3, 0, 9, 1, 15, 2, 14, 4, 13, 5, 12, 6, 11, 7, 10, 8};
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_maker *maker;
    struct blksum_map *map, *made;
    struct blksum_diff *diff;
    struct blksum_error *error;
    uint64_t left;

    (void)state;
    unlink("made.blkmap");
    maker = blksum_maker_new(SIZE, NULL, &error);
    assert_non_null(maker);
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t at = order[i] * 64 * KIB, len = at == MIB ? 1000 : 64 * KIB;

        assert_int_equal(blksum_maker_left(maker, &left, &error), 0);
        assert_int_equal(left, BLOCKS - i);
        assert_int_equal(blksum_maker_write(maker, "made.blkmap", &error), -1);
        assert_error(error, BLKSUM_ERROR_MAP_INCOMPLETE, "did not come");
        if (order[i] > 3 && order[i] < 16)
            assert_int_equal(blksum_maker_add_zeros(maker, at, len, &error), 0);
        else
            assert_int_equal(blksum_maker_add(maker, content + at, len, at, &error), 0);
    }
    assert_int_equal(access("made.blkmap", F_OK), -1);
    assert_int_equal(blksum_maker_add(maker, content, 1, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "whole blocks");
    assert_int_equal(blksum_maker_write(maker, "made.blkmap", &error), 0);
    /* A file that is there is not replaced. */
    assert_int_equal(blksum_maker_write(maker, "made.blkmap", &error), -1);
    assert_error(error, BLKSUM_ERROR_OPEN, "made.blkmap");

    assert_int_equal(blksum_map_create("disk.blkmap", image, NULL, NULL, NULL, &error), 0);
    map = open_map("disk.blkmap", NULL);
    made = open_map("made.blkmap", NULL);
    diff = blksum_map_diff(map, made, NULL, &error);
    assert_int_equal(blksum_diff_count(diff, &error), 0);
    blksum_diff_free(diff);
    diff = blksum_map_verify(made, image, NULL, NULL, NULL, &error);
    assert_int_equal(blksum_diff_count(diff, &error), 0);
    blksum_diff_free(diff);

    /* Content that changes has no map. */
    content[5] ^= 1;
    assert_int_equal(blksum_maker_add(maker, content, 64 * KIB, 0, &error), 0);
    assert_int_equal(blksum_maker_write(maker, "changed.blkmap", &error), -1);
    assert_error(error, BLKSUM_ERROR_CHANGED, "block 0");
    assert_int_equal(access("changed.blkmap", F_OK), -1);
    blksum_maker_free(maker);
    blksum_map_close(map);
    blksum_map_close(made);
    blksum_image_close(image);
}

/* Finds content in the file, and changes its first byte. Returns its offset. */
static long damage(const char *name, const void *wanted, size_t length)
{
    FILE *file = fopen(name, "r+b");
    size_t size = 128 * MIB;
    char *all = (char *)malloc(size), *found;
    long at;

    assert_non_null(file);
    assert_non_null(all);
    assert_int_equal(fread(all, 1, size, file), size);
    found = (char *)memmem(all, size, wanted, length);
    assert_non_null(found);
    at = (long)(found - all);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(*found ^ 1, file), *found ^ 1);
    assert_int_equal(fclose(file), 0);
    free(all);
    return at;
}

static void file_systems_are_verified(void **state)
{
    const struct blksum_image *images[2];
    struct blksum_image *image, *disk = open_image("disk.img", NULL);
    struct blksum_opts *opts = opts_with("limit", "0");
    struct blksum_error *error;
    struct blksum_btrfs *btrfs;
    struct blksum_btrfs_finding finding;
    struct calls calls = {0, 0, 0, 0, pthread_self()};
    uint64_t at;

    (void)state;
    make_btrfs("btrfs.img", content, 200000);
    image = open_image("btrfs.img", NULL);
    images[0] = image;
    images[1] = disk;
    btrfs = blksum_btrfs_verify(images, 1, NULL, count_calls, &calls, &error);
    assert_no_error(error);
    assert_true(calls.count >= 2);
    assert_true(calls.done >= 200000);
    assert_int_equal(calls.done, calls.total);
    assert_int_equal(blksum_btrfs_verdict(btrfs, &error), BLKSUM_EQUAL);
    assert_int_equal(blksum_btrfs_count(btrfs, &error), 0);
    assert_null(blksum_btrfs_problem(btrfs, 0));
    for (int category = 0; category <= BLKSUM_BTRFS_PARITY; category++)
        assert_int_equal(blksum_btrfs_wrong(btrfs, category, &error), 0);
    blksum_btrfs_free(btrfs);

    /* The other image has none. */
    btrfs = blksum_btrfs_verify(images, 2, NULL, NULL, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_btrfs_verdict(btrfs, &error), BLKSUM_UNKNOWN);
    assert_string_equal(blksum_btrfs_problem(btrfs, 0), "disk.img: no btrfs file system");
    assert_null(blksum_btrfs_problem(btrfs, 1));
    blksum_btrfs_free(btrfs);
    assert_null(blksum_btrfs_verify(images + 1, 1, NULL, NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_FORMAT, "disk.img: no btrfs file system");
    calls.cancel_at = calls.count + 1;
    assert_null(blksum_btrfs_verify(images, 1, NULL, count_calls, &calls, &error));
    assert_error(error, BLKSUM_ERROR_CANCELLED, "cancelled");
    blksum_image_close(image);

    /* The first block of the file. */
    at = (uint64_t)damage("btrfs.img", content, 4096);
    image = open_image("btrfs.img", NULL);
    images[0] = image;
    btrfs = blksum_btrfs_verify(images, 1, NULL, NULL, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_btrfs_verdict(btrfs, &error), BLKSUM_DIFFERENT);
    assert_int_equal(blksum_btrfs_count(btrfs, &error), 1);
    assert_int_equal(blksum_btrfs_wrong(btrfs, BLKSUM_BTRFS_DATA_CHECKSUM, &error), 1);
    assert_int_equal(blksum_btrfs_wrong(btrfs, BLKSUM_BTRFS_READ, &error), 0);
    assert_int_equal(blksum_btrfs_get(btrfs, 0, &finding, &error), 0);
    assert_int_equal(finding.category, BLKSUM_BTRFS_DATA_CHECKSUM);
    assert_int_equal(finding.offset, at);
    assert_int_equal(finding.length, 4096);
    assert_int_equal(finding.blocks, 1);
    assert_int_equal(finding.mirror, 1);
    assert_int_equal(finding.mirrors, 1);
    assert_int_equal(finding.reserved, 0);
    assert_true(finding.logical != UINT64_MAX);
    assert_string_equal(finding.subject, "data");
    assert_string_equal(finding.device, "btrfs.img");
    assert_memory_equal(finding.reason, "checksum is 0x", 14);
    assert_string_equal(blksum_btrfs_file(btrfs, 0, 0), "folder/file");
    assert_null(blksum_btrfs_file(btrfs, 0, 1));
    assert_null(blksum_btrfs_file(btrfs, 1, 0));
    assert_int_equal(blksum_btrfs_get(btrfs, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_btrfs_get(btrfs, 1, &finding, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no finding 1 of 1");
    blksum_btrfs_free(btrfs);
    btrfs = blksum_btrfs_verify(images, 1, opts, NULL, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_btrfs_count(btrfs, &error), 0);
    assert_int_equal(blksum_btrfs_wrong(btrfs, BLKSUM_BTRFS_DATA_CHECKSUM, &error), 1);
    assert_int_equal(blksum_btrfs_verdict(btrfs, &error), BLKSUM_DIFFERENT);
    blksum_btrfs_free(btrfs);
    blksum_opts_free(opts);
    blksum_image_close(image);
    blksum_image_close(disk);
}

static void images_are_checked(void **state)
{
    static const char *const arguments[] = {"no layer 1 of 1", "no finding 1 of 1"};
    struct blksum_image *image;
    struct blksum_opts *opts = opts_with("limit", "0");
    struct blksum_error *error;
    struct blksum_check *check;
    struct blksum_check_layer layer;
    struct blksum_check_finding finding;
    struct calls calls = {0, 0, 0, 0, pthread_self()};
    uint64_t at;

    (void)state;
    make_btrfs("btrfs.img", content, 200000);
    image = open_image("btrfs.img", NULL);
    check = blksum_image_check(image, NULL, count_calls, &calls, &error);
    assert_no_error(error);
    assert_true(calls.count >= 2);
    assert_true(calls.done >= 200000);
    assert_int_equal(calls.done, calls.total);
    assert_int_equal(blksum_check_verdict(check, &error), BLKSUM_EQUAL);
    assert_int_equal(blksum_check_count(check, &error), 0);
    assert_int_equal(blksum_check_layers(check, &error), 1);
    assert_int_equal(blksum_check_layer(check, 0, &layer, &error), 0);
    assert_string_equal(layer.place, "disk");
    assert_string_equal(layer.kind, "btrfs");
    assert_non_null(layer.uuid);
    assert_int_equal(layer.verdict, BLKSUM_EQUAL);
    assert_int_equal(layer.offset, 0);
    assert_int_equal(layer.length, 128 * MIB);
    assert_true(layer.verified > 0 && layer.verified_bytes >= 200000);
    assert_true(layer.leaks == UINT64_MAX && layer.outdated == UINT64_MAX);
    assert_int_equal(layer.partition, 0);
    blksum_check_free(check);
    calls.cancel_at = calls.count + 1;
    assert_null(blksum_image_check(image, NULL, count_calls, &calls, &error));
    assert_error(error, BLKSUM_ERROR_CANCELLED, "cancelled");
    blksum_image_close(image);

    /* The first block of the file. */
    at = (uint64_t)damage("btrfs.img", content, 4096);
    image = open_image("btrfs.img", NULL);
    check = blksum_image_check(image, NULL, NULL, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_check_verdict(check, &error), BLKSUM_DIFFERENT);
    assert_int_equal(blksum_check_layer(check, 0, &layer, &error), 0);
    assert_int_equal(layer.verdict, BLKSUM_DIFFERENT);
    assert_int_equal(layer.mismatches, 1);
    assert_int_equal(blksum_check_count(check, &error), 1);
    assert_int_equal(blksum_check_get(check, 0, &finding, &error), 0);
    assert_int_equal(finding.problem, BLKSUM_CHECK_MISMATCH);
    assert_int_equal(finding.layer, 0);
    assert_int_equal(finding.offset, at);
    assert_int_equal(finding.length, 4096);
    assert_int_equal(finding.count, 1);
    assert_int_equal(finding.reserved, 0);
    assert_string_equal(finding.structure, "data");
    assert_true(strlen(finding.reason) > 0);
    assert_non_null(strstr(blksum_check_file(check, 0, 0), "folder/file"));
    assert_null(blksum_check_file(check, 0, 1));
    assert_null(blksum_check_file(check, 1, 0));
    assert_null(blksum_check_remark(check, 1, 0));
    assert_int_equal(blksum_check_layer(check, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_check_layer(check, 1, &layer, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, arguments[0]);
    assert_int_equal(blksum_check_get(check, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_check_get(check, 1, &finding, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, arguments[1]);
    blksum_check_free(check);
    check = blksum_image_check(image, opts, NULL, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_check_count(check, &error), 0);
    assert_int_equal(blksum_check_verdict(check, &error), BLKSUM_DIFFERENT);
    blksum_check_free(check);
    blksum_opts_free(opts);
    blksum_image_close(image);
}

static void owners_are_found(void **state)
{
    struct blksum_image *image, *disk = open_image("disk.img", NULL);
    struct blksum_opts *opts = opts_with("limit", "1");
    struct blksum_error *error;
    struct blksum_owners *owners;
    struct blksum_owned owned;
    uint64_t at, end = 0;
    int64_t count;

    (void)state;
    make_btrfs("btrfs.img", content, 200000);
    at = (uint64_t)damage("btrfs.img", content, 4096);
    image = open_image("btrfs.img", NULL);
    owners = blksum_image_owners(image, at, 4096, NULL, &error);
    assert_no_error(error);
    assert_int_equal(blksum_owners_count(owners, &error), 1);
    assert_int_equal(blksum_owners_get(owners, 0, &owned, &error), 0);
    assert_int_equal(owned.kind, BLKSUM_OWNER_FILE);
    assert_int_equal(owned.offset, at);
    assert_int_equal(owned.length, 4096);
    assert_int_equal(owned.file_offset, 0);
    assert_int_equal(owned.partition, 0);
    assert_true(owned.object != UINT64_MAX);
    assert_string_equal(owned.file_system, "btrfs");
    assert_null(owned.structure);
    assert_string_equal(blksum_owners_name(owners, 0, 0), "folder/file");
    assert_null(blksum_owners_name(owners, 0, 1));
    assert_null(blksum_owners_name(owners, 1, 0));
    assert_null(blksum_owners_remark(owners, 0));
    assert_int_equal(blksum_owners_get(owners, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_owners_get(owners, 1, &owned, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no extent 1 of 1");
    blksum_owners_free(owners);

    owners = blksum_image_owners(image, 0, UINT64_MAX, NULL, &error);
    assert_no_error(error);
    count = blksum_owners_count(owners, &error);
    assert_true(count > 3);
    for (size_t i = 0; (int64_t)i < count; i++) {
        assert_int_equal(blksum_owners_get(owners, i, &owned, &error), 0);
        assert_int_equal(owned.offset, end);
        end += owned.length;
    }
    assert_int_equal(end, 128 * MIB);
    blksum_owners_free(owners);
    assert_null(blksum_image_owners(image, 0, UINT64_MAX, opts, &error));
    assert_error(error, BLKSUM_ERROR_LIMIT, "more than 1 extents");
    owners = blksum_image_owners(image, UINT64_MAX, UINT64_MAX, opts, &error);
    assert_no_error(error);
    assert_int_equal(blksum_owners_count(owners, &error), 0);
    blksum_owners_free(owners);
    assert_null(blksum_image_owners(disk, 0, UINT64_MAX, NULL, &error));
    assert_error(error, BLKSUM_ERROR_FORMAT, "disk.img: has no file system that is read");
    blksum_opts_free(opts);
    blksum_image_close(image);
    blksum_image_close(disk);
}

static void errors_have_kinds(void **state)
{
    struct blksum_opts *qcow2 = opts_with("format", "qcow2");
    struct blksum_error *error;

    (void)state;
    assert_null(blksum_image_open("missing.img", NULL, &error));
    assert_int_equal(blksum_error_errno(error), ENOENT);
    assert_error(error, BLKSUM_ERROR_OPEN, "missing.img");
    assert_null(blksum_image_open("/", NULL, &error));
    assert_error(error, BLKSUM_ERROR_FILE_TYPE, "/");
    assert_null(blksum_image_open("disk.img", qcow2, &error));
    assert_error(error, BLKSUM_ERROR_FORMAT, "qcow2");
    assert_null(blksum_map_open("missing.blkmap", NULL, &error));
    assert_error(error, BLKSUM_ERROR_OPEN, "missing.blkmap");
    assert_null(blksum_map_open("disk.img", NULL, &error));
    assert_error(error, BLKSUM_ERROR_MAP, "disk.img");
    assert_null(blksum_map_open("/", NULL, &error));
    assert_error(error, BLKSUM_ERROR_MAP, "/");
    blksum_opts_free(qcow2);
}

static void a_changed_image_is_an_error(void **state)
{
    struct blksum_image *image = open_image("disk.img", NULL);
    struct blksum_error *error;
    unsigned char md[BLKSUM_MAX_MD_SIZE];

    (void)state;
    write_file("disk.img", content, 10);
    assert_int_equal(blksum_image_check_unchanged(image, &error), -1);
    assert_error(error, BLKSUM_ERROR_CHANGED, "disk.img");
    assert_int_equal(blksum_image_checksum(image, NULL, NULL, NULL, md, NULL, &error), -1);
    blksum_error_free(error);
    blksum_image_close(image);
}

struct shared {
    struct blksum_image *image;
    struct blksum_map *map;
    struct blksum_maker *maker;
    char hex[HEX_SIZE];
    unsigned first;
};

static void *work(void *argument)
{
    struct shared *shared = (struct shared *)argument;
    static const size_t block = 64 * KIB;
    unsigned char *buf = (unsigned char *)malloc(block), md[BLKSUM_MAX_MD_SIZE];
    unsigned int len;
    char hex[HEX_SIZE];
    void *failed = NULL;

    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t at = (shared->first + i) % BLOCKS * block, size = at == MIB ? 1000 : block;

        if (blksum_image_read(shared->image, buf, size, at, NULL) != 0 ||
            blksum_map_check(shared->map, buf, size, at, NULL, NULL) != BLKSUM_EQUAL ||
            blksum_maker_add(shared->maker, buf, size, at, NULL) != 0)
            failed = shared;
    }
    if (blksum_image_checksum(shared->image, NULL, NULL, NULL, md, &len, NULL) != 0)
        failed = shared;
    to_hex(md, len, hex);
    if (strcmp(hex, shared->hex) != 0)
        failed = shared;
    free(buf);
    return failed;
}

static void threads_share_objects(void **state)
{
    struct shared shared[8];
    pthread_t threads[8];
    struct blksum_error *error;

    (void)state;
    shared[0].image = open_image("disk.img", NULL);
    assert_int_equal(blksum_map_create("disk.blkmap", shared[0].image, NULL, NULL, NULL, &error),
                     0);
    shared[0].map = open_map("disk.blkmap", NULL);
    shared[0].maker = blksum_maker_new(SIZE, NULL, &error);
    checksum(shared[0].image, NULL, shared[0].hex);
    for (unsigned i = 0; i < 8; i++) {
        shared[i] = shared[0];
        shared[i].first = i * 5;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &shared[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        void *failed;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    unlink("made.blkmap");
    assert_int_equal(blksum_maker_write(shared[0].maker, "made.blkmap", &error), 0);
    blksum_maker_free(shared[0].maker);
    blksum_map_close(shared[0].map);
    blksum_image_close(shared[0].image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_agree),
        cmocka_unit_test_setup(content_is_read, set_up),
        cmocka_unit_test_setup(extents_cover_the_content, set_up),
        cmocka_unit_test_setup(progress_is_reported, set_up),
        cmocka_unit_test_setup(values_are_found, set_up),
        cmocka_unit_test(lists_of_digests_are_not_equal),
        cmocka_unit_test_setup(parts_are_selected, set_up),
        cmocka_unit_test_setup(maps_know_their_image, set_up),
        cmocka_unit_test_setup(contents_are_compared, set_up),
        cmocka_unit_test_setup(an_overwritten_map_is_an_error, set_up),
        cmocka_unit_test_setup(keys_seal_maps, set_up),
        cmocka_unit_test_setup(maps_are_made_in_any_order, set_up),
        cmocka_unit_test_setup(file_systems_are_verified, set_up),
        cmocka_unit_test_setup(images_are_checked, set_up),
        cmocka_unit_test_setup(owners_are_found, set_up),
        cmocka_unit_test_setup(errors_have_kinds, set_up),
        cmocka_unit_test_setup(a_changed_image_is_an_error, set_up),
        cmocka_unit_test_setup(threads_share_objects, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
