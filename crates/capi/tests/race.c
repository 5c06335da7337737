/* Changes a lent buffer. A sanitizer that finds this race would find one of the library, too. */

#include "common.h"

int main(void)
{
    struct blkhash_completion completion;
    unsigned char *buf = allocate(256 * KIB);
    struct blkhash *h = new_hash("sha256", "flat", 4096, 2, 1);

    /* Repeated, because the race is found only if both accesses are close in time. */
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
