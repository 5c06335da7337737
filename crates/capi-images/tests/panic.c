/*
 * A panic does not cross into C. The library has no known panic, so the test causes one:
 * pthread_join() fails, and Rust's standard library panics. Runs in an empty folder.
 */

#include "common.h"

#include <dlfcn.h>

static int lie;

/* Replaces pthread_join() of the C library in the whole process. */
int pthread_join(pthread_t thread, void **value)
{
    int (*real)(pthread_t, void **);
    void *symbol = dlsym(RTLD_NEXT, "pthread_join");
    int error;

    memcpy(&real, &symbol, sizeof real);
    error = real(thread, value);
    return lie ? EDEADLK : error;
}

static void a_panic_is_an_error(void **state)
{
    struct blksum_image *image;
    struct blksum_error *error;
    unsigned char md[BLKSUM_MAX_MD_SIZE];

    (void)state;
    write_file("disk.img", "content", 7);
    image = open_image("disk.img", NULL);
    lie = 1;
    assert_int_equal(blksum_image_checksum(image, NULL, NULL, NULL, md, NULL, &error), -1);
    lie = 0;
    assert_error(error, BLKSUM_ERROR_INTERNAL, "bug");
    assert_int_equal(blksum_image_checksum(image, NULL, NULL, NULL, md, NULL, &error), 0);
    blksum_image_close(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_panic_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
