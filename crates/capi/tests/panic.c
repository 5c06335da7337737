/*
 * A panic does not cross into C. The library has no known panic, so the test causes one:
 * pthread_join() fails, and Rust's standard library panics.
 */

#include "common.h"

#include <dlfcn.h>
#include <pthread.h>

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

static struct blkhash *with_a_thread(const unsigned char *buf, size_t size)
{
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 4);

    assert_int_equal(blkhash_update(h, buf, size), 0);
    return h;
}

static void a_panic_is_an_error_that_stays(void **state)
{
    unsigned char *buf = allocate(8 * MIB);
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    struct blkhash_completion completion;
    struct blkhash *h;

    (void)state;
    memset(buf, 'A', 8 * MIB);
    h = with_a_thread(buf, 8 * MIB);
    lie = 1;
    assert_int_equal(blkhash_final(h, md, NULL), ENOTRECOVERABLE);
    lie = 0;
    assert_int_equal(blkhash_update(h, buf, 1), ENOTRECOVERABLE);
    assert_int_equal(blkhash_aio_update(h, buf, 1, NULL), ENOTRECOVERABLE);
    assert_int_equal(blkhash_aio_completions(h, &completion, 1), -ENOTRECOVERABLE);
    assert_int_equal(blkhash_final(h, md, NULL), ENOTRECOVERABLE);
    blkhash_free(h);

    /* blkhash_free() cannot return an error. */
    h = with_a_thread(buf, 8 * MIB);
    lie = 1;
    blkhash_free(h);
    lie = 0;

    /* Other hashes are not affected. */
    h = with_a_thread(buf, 8 * MIB);
    assert_int_equal(blkhash_final(h, md, NULL), 0);
    blkhash_free(h);
    free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_panic_is_an_error_that_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
