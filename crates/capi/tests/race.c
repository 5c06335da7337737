/* Changes a buffer while it is lent: the sanitizer that finds this would find a race of the library. */

#include "common.h"

int main(void)
{
    struct blkhash_completion completion;
    unsigned char *buf = allocate(256 * KIB);
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 1);

    /* It is noticed only where the one is not long done when the other comes. */
    for (int i = 0; i < 50; i++) {
        memset(buf, 'A', 256 * KIB);
        assert_int_equal(blkhash_aio_update(h, buf, 256 * KIB, NULL), 0);
        memset(buf, 'B', 256 * KIB);
        while (wait_for_completions(h, &completion, 1) == 0)
            continue;
    }
    blkhash_free(h);
    free(buf);
    return 0;
}
