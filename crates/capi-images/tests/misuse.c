/* Misuse is an error, and does not end the program. Runs in an empty folder. */

#include "common.h"

#include <signal.h>

#define SIZE (256 * KIB)

static unsigned char content[SIZE];

/* One object of each type. */
struct objects {
    struct blksum_opts *opts;
    struct blksum_image *image;
    struct blksum_map *map;
    struct blksum_diff *diff;
    struct blksum_maker *maker;
    struct blksum_btrfs *btrfs;
    struct blksum_check *check;
    struct blksum_owners *owners;
};

static struct blksum_btrfs *verify(const struct blksum_image *image, struct blksum_error **error)
{
    return blksum_btrfs_verify(&image, 1, NULL, NULL, NULL, error);
}

static struct objects create(void)
{
    struct objects it;
    struct blksum_image *image;
    struct blksum_error *error;

    memset(content, 'x', sizeof content);
    write_file("disk.img", content, sizeof content);
    unlink("disk.blkmap");
    it.opts = blksum_opts_new();
    it.image = open_image("disk.img", NULL);
    assert_int_equal(blksum_map_create("disk.blkmap", it.image, NULL, NULL, NULL, &error), 0);
    it.map = open_map("disk.blkmap", NULL);
    it.diff = blksum_map_verify(it.map, it.image, NULL, NULL, NULL, &error);
    it.maker = blksum_maker_new(SIZE, NULL, &error);
    assert_non_null(it.opts);
    assert_non_null(it.diff);
    assert_non_null(it.maker);
    if (access("btrfs.img", F_OK) != 0)
        make_btrfs("btrfs.img", content, sizeof content);
    image = open_image("btrfs.img", NULL);
    it.btrfs = verify(image, &error);
    assert_non_null(it.btrfs);
    it.check = blksum_image_check(image, NULL, NULL, NULL, &error);
    assert_non_null(it.check);
    it.owners = blksum_image_owners(image, 0, UINT64_MAX, NULL, &error);
    assert_non_null(it.owners);
    blksum_image_close(image);
    return it;
}

static void destroy(struct objects it)
{
    blksum_owners_free(it.owners);
    blksum_check_free(it.check);
    blksum_btrfs_free(it.btrfs);
    blksum_maker_free(it.maker);
    blksum_diff_free(it.diff);
    blksum_map_close(it.map);
    blksum_image_close(it.image);
    blksum_opts_free(it.opts);
}

/* Returns the number of calls that did not fail with an error of a kind. */
static int calls_that_work(struct objects it, int kind)
{
    static unsigned char buf[SIZE];
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    struct blksum_error *error = NULL;
    struct blksum_extent extent;
    struct blksum_difference difference;
    struct blksum_btrfs_finding finding;
    struct blksum_check_layer layer;
    struct blksum_check_finding check_finding;
    struct blksum_owned owned;
    char tag[10];
    unsigned int len;
    uint64_t value;
    int wrong = 0;

#define FAILS(call)                                                                               \
    do {                                                                                          \
        if ((call) || error == NULL || blksum_error_kind(error) != kind) {                        \
            fprintf(stderr, "%s: %s\n", #call, blksum_error_message(error));                      \
            wrong++;                                                                              \
        }                                                                                         \
        blksum_error_free(error);                                                                 \
    } while (0)
    FAILS(blksum_opts_set(it.opts, "digest", "sha256", &error) != -1);
    FAILS(blksum_opts_set_number(it.opts, "threads", 1, &error) != -1);
    FAILS(blksum_opts_set_bytes(it.opts, "salt", "x", 1, &error) != -1);
    FAILS(blksum_image_size(it.image, &value, &error) != -1);
    FAILS(blksum_image_format(it.image, &error) != NULL);
    FAILS(blksum_image_extent(it.image, 0, &extent, &error) != -1);
    FAILS(blksum_image_read(it.image, buf, 1, 0, &error) != -1);
    FAILS(blksum_image_check_unchanged(it.image, &error) != -1);
    FAILS(blksum_image_checksum(it.image, NULL, NULL, NULL, md, &len, &error) != -1);
    FAILS(blksum_image_expect(it.image, "sha256:00", NULL, NULL, NULL, tag, 10, &error) != -1);
    FAILS(blksum_image_diff(it.image, it.image, NULL, NULL, NULL, &error) != NULL);
    FAILS(blksum_map_create("x.blkmap", it.image, NULL, NULL, NULL, &error) != -1);
    FAILS(blksum_map_size(it.map, &value, &error) != -1);
    FAILS(blksum_map_block_size(it.map, &value, &error) != -1);
    FAILS(blksum_map_digest_name(it.map, &error) != NULL);
    FAILS(blksum_map_is_complete(it.map, &error) != -1);
    FAILS(blksum_map_digest(it.map, 0, md, &len, &error) != -1);
    FAILS(blksum_map_check(it.map, buf, SIZE, 0, &value, &error) != -1);
    FAILS(blksum_map_check_zeros(it.map, 0, SIZE, &value, &error) != -1);
    FAILS(blksum_map_verify(it.map, it.image, NULL, NULL, NULL, &error) != NULL);
    FAILS(blksum_map_diff(it.map, it.map, NULL, &error) != NULL);
    FAILS(blksum_diff_count(it.diff, &error) != -1);
    FAILS(blksum_diff_get(it.diff, 0, &difference, &error) != -1);
    FAILS(blksum_maker_add(it.maker, buf, SIZE, 0, &error) != -1);
    FAILS(blksum_maker_add_zeros(it.maker, 0, SIZE, &error) != -1);
    FAILS(blksum_maker_left(it.maker, &value, &error) != -1);
    FAILS(blksum_maker_write(it.maker, "x.blkmap", &error) != -1);
    FAILS(verify(it.image, &error) != NULL);
    FAILS(blksum_btrfs_verdict(it.btrfs, &error) != -1);
    FAILS(blksum_btrfs_wrong(it.btrfs, 0, &error) != -1);
    FAILS(blksum_btrfs_count(it.btrfs, &error) != -1);
    FAILS(blksum_btrfs_get(it.btrfs, 0, &finding, &error) != -1);
    if (blksum_btrfs_file(it.btrfs, 0, 0) != NULL || blksum_btrfs_problem(it.btrfs, 0) != NULL)
        wrong++;
    FAILS(blksum_image_check(it.image, NULL, NULL, NULL, &error) != NULL);
    FAILS(blksum_check_verdict(it.check, &error) != -1);
    FAILS(blksum_check_layers(it.check, &error) != -1);
    FAILS(blksum_check_layer(it.check, 0, &layer, &error) != -1);
    FAILS(blksum_check_count(it.check, &error) != -1);
    FAILS(blksum_check_get(it.check, 0, &check_finding, &error) != -1);
    if (blksum_check_file(it.check, 0, 0) != NULL || blksum_check_remark(it.check, 0, 0) != NULL)
        wrong++;
    FAILS(blksum_image_owners(it.image, 0, SIZE, NULL, &error) != NULL);
    FAILS(blksum_owners_count(it.owners, &error) != -1);
    FAILS(blksum_owners_get(it.owners, 0, &owned, &error) != -1);
    if (blksum_owners_name(it.owners, 0, 0) != NULL || blksum_owners_remark(it.owners, 0) != NULL)
        wrong++;
    if (blksum_image_warning(it.image, 0) != NULL)
        wrong++;
    /* An error is not necessary. */
    if (blksum_image_size(it.image, &value, NULL) != -1)
        wrong++;
    return wrong;
}

static void null_is_an_error(void **state)
{
    struct objects none = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}, it = create();
    struct blksum_error *error;
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    const struct blksum_image *image = it.image;
    uint64_t offset;

    (void)state;
    assert_int_equal(calls_that_work(none, BLKSUM_ERROR_ARGUMENT), 0);
    destroy(none);
    assert_int_equal(blksum_error_kind(NULL), BLKSUM_ERROR_NONE);
    assert_string_equal(blksum_error_message(NULL), "no error");
    assert_int_equal(blksum_error_errno(NULL), 0);
    assert_int_equal(blksum_error_offset(NULL, &offset), 0);
    blksum_error_free(NULL);

    assert_null(blksum_image_open(NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_null(blksum_image_open(NULL, NULL, NULL));
    assert_null(blksum_map_open(NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_image_size(it.image, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_image_extent(it.image, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_image_read(it.image, NULL, 1, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_image_read(it.image, md, SIZE_MAX, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "longer");
    assert_int_equal(blksum_image_checksum(it.image, NULL, NULL, NULL, NULL, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_image_checksum(it.image, NULL, NULL, NULL, md, NULL, NULL), 0);
    assert_int_equal(blksum_image_expect(it.image, NULL, NULL, NULL, NULL, NULL, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_map_digest(it.map, 0, NULL, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_map_check(it.map, NULL, SIZE, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_map_create(NULL, it.image, NULL, NULL, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_maker_add(it.maker, NULL, SIZE, 0, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_opts_set(it.opts, NULL, "x", &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_null(blksum_btrfs_verify(NULL, 1, NULL, NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no images");
    assert_null(blksum_btrfs_verify(&image, 0, NULL, NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no images");
    assert_null(blksum_btrfs_verify(&image, SIZE_MAX, NULL, NULL, NULL, &error));
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "more than");
    assert_int_equal(blksum_btrfs_wrong(it.btrfs, 10, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "category 10");
    assert_int_equal(blksum_btrfs_wrong(it.btrfs, -1, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "category -1");
    assert_int_equal(blksum_btrfs_get(it.btrfs, 0, NULL, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no finding 0");
    destroy(it);
}

static void freed_objects_are_an_error(void **state)
{
    struct objects it = create();
    struct blksum_error *error;

    (void)state;
    destroy(it);
    assert_int_equal(calls_that_work(it, BLKSUM_ERROR_ARGUMENT), 0);
    destroy(it);
    assert_null(blksum_image_open("missing", NULL, &error));
    blksum_error_free(error);
    assert_int_equal(blksum_error_kind(error), BLKSUM_ERROR_NONE);
    assert_string_equal(blksum_error_message(error), "no error");
    blksum_error_free(error);
}

static void objects_of_other_types_are_an_error(void **state)
{
    struct objects it = create(), other;

    (void)state;
    other.opts = (struct blksum_opts *)(void *)it.image;
    other.image = (struct blksum_image *)(void *)it.map;
    other.map = (struct blksum_map *)(void *)it.diff;
    other.diff = (struct blksum_diff *)(void *)it.maker;
    other.maker = (struct blksum_maker *)(void *)it.btrfs;
    other.btrfs = (struct blksum_btrfs *)(void *)it.check;
    other.check = (struct blksum_check *)(void *)it.owners;
    other.owners = (struct blksum_owners *)(void *)it.opts;
    assert_int_equal(calls_that_work(other, BLKSUM_ERROR_ARGUMENT), 0);
    destroy(other);
    /* They were not freed. */
    assert_int_equal(blksum_map_is_complete(it.map, NULL), 1);
    destroy(it);
}

static void options_refuse_values(void **state)
{
    static const char *const cases[][3] = {
        {"digest", "sha", "digest"},       {"construction", "x", "construction"},
        {"format", "tar", "format"},       {"follow", "all", "follow"},
        {"threads", "0", "threads"},       {"threads", "x", "threads"},
        {"threads", "-1", "threads"},      {"block-size", "1000", "block-size"},
        {"partition", "4294967296", "partition"},
        {"limit", "18446744073709551616", "limit"},
        {"force-share", "2", "force-share"}, {"key", "0123456789abcdef", "bytes"},
        {"colour", "red", "no option"},    {"", "", "no option"},
        {"digest", "\xff", "UTF-8"},       {"\xff", "1", "UTF-8"},
        {"max-memory", "1M", "max-memory"}, {"timeout", "-1", "timeout"},
        {"secret", "secret", "bytes"},     {"vpc-size", "large", "auto, geometry or current"},
    };
    static const char *const accepted[][2] = {
        {"format", "raw+gzip"},   {"backing-format", "qcow2"},  {"vpc-size", "current"},
        {"follow", "none"},       {"force-share", "1"},         {"tls-certificates", "folder"},
        {"max-zeros", "1048576"}, {"max-memory", "0"},          {"cache", "no"},
        {"holes", "ignore"},      {"reader", "qemu"},           {"nbd-server", "qemu-nbd"},
        {"timeout", "0"},         {"snapshot", "before"},
    };
    struct blksum_opts *opts = blksum_opts_new();
    struct blksum_error *error;
    static const char bytes[5000] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(blksum_opts_set(opts, cases[i][0], cases[i][1], &error), -1);
        assert_error(error, BLKSUM_ERROR_ARGUMENT, cases[i][2]);
    }
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        assert_int_equal(blksum_opts_set(opts, accepted[i][0], accepted[i][1], NULL), 0);
        assert_int_equal(blksum_opts_set(opts, accepted[i][0], NULL, NULL), 0);
    }
    assert_int_equal(blksum_opts_set_number(opts, "digest", 1, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no number");
    assert_int_equal(blksum_opts_set_number(opts, "follow", 1, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no number");
    assert_int_equal(blksum_opts_set_number(opts, "colour", 1, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "no option");
    assert_int_equal(blksum_opts_set_bytes(opts, "key", bytes, 15, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "key");
    assert_int_equal(blksum_opts_set_bytes(opts, "key", bytes, 5000, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "key");
    assert_int_equal(blksum_opts_set_bytes(opts, "salt", bytes, 5000, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "salt");
    assert_int_equal(blksum_opts_set_bytes(opts, "salt", NULL, 5, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "NULL");
    assert_int_equal(blksum_opts_set_bytes(opts, "digest", bytes, 5, &error), -1);
    assert_error(error, BLKSUM_ERROR_ARGUMENT, "digest");
    /* A value that is refused does not change the earlier one. */
    assert_int_equal(blksum_opts_set(opts, "digest", "crc32c", &error), 0);
    assert_int_equal(blksum_opts_set(opts, "digest", "x", NULL), -1);
    blksum_opts_free(opts);
}

static void a_child_cannot_use_objects(void **state)
{
    struct objects it = create();
    int status;
    pid_t child;

    (void)state;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        int wrong = calls_that_work(it, BLKSUM_ERROR_FORK);
        struct blksum_image *own;
        unsigned char md[BLKSUM_MAX_MD_SIZE];

        destroy(it);
        own = blksum_image_open("disk.img", NULL, NULL);
        if (blksum_image_checksum(own, NULL, NULL, NULL, md, NULL, NULL) != 0)
            wrong++;
        blksum_image_close(own);
        /* The parent's objects leak here by design. Exit without a leak check. */
        if (wrong == 0)
            raise(SIGKILL);
        _exit(1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(blksum_map_is_complete(it.map, NULL), 1);
    destroy(it);
}

/* A thread that frees an object does not take it from another one. */
static void *use(void *argument)
{
    struct blksum_image *image = (struct blksum_image *)argument;
    unsigned char buf[4096];
    void *failed = NULL;

    for (;;) {
        struct blksum_error *error;

        if (blksum_image_read(image, buf, sizeof buf, 0, &error) == 0) {
            if (buf[0] != 'x')
                failed = argument;
            continue;
        }
        if (blksum_error_kind(error) != BLKSUM_ERROR_ARGUMENT)
            failed = argument;
        blksum_error_free(error);
        return failed;
    }
}

static void objects_are_freed_while_used(void **state)
{
    struct objects it = create();

    (void)state;
    destroy(it);
    for (int round = 0; round < 20; round++) {
        struct blksum_image *image = open_image("disk.img", NULL);
        pthread_t threads[3];

        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, use, image), 0);
        usleep(2000);
        blksum_image_close(image);
        for (int i = 0; i < 3; i++) {
            void *failed;

            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_an_error),
        cmocka_unit_test(freed_objects_are_an_error),
        cmocka_unit_test(objects_of_other_types_are_an_error),
        cmocka_unit_test(options_refuse_values),
        cmocka_unit_test(a_child_cannot_use_objects),
        cmocka_unit_test(objects_are_freed_while_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
