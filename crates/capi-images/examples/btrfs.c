/* Verifies the btrfs file systems in images, and prints the files that are damaged: btrfs IMAGE... */

#include <stdio.h>
#include <stdlib.h>

#include <blksum.h>

/* Prints the findings, the files that they affect, and what could not be verified. */
static int print(const struct blksum_btrfs *btrfs, struct blksum_error **error)
{
    int64_t count = blksum_btrfs_count(btrfs, error);
    const char *text;

    for (int64_t i = 0; i < count; i++) {
        struct blksum_btrfs_finding it;

        if (blksum_btrfs_get(btrfs, (size_t)i, &it, error) != 0)
            return -1;
        printf("%s at %llu: %s\n", it.subject, (unsigned long long)it.logical, it.reason);
        for (size_t j = 0; (text = blksum_btrfs_file(btrfs, (size_t)i, j)) != NULL; j++)
            printf("  %s\n", text);
    }
    for (size_t i = 0; (text = blksum_btrfs_problem(btrfs, i)) != NULL; i++)
        printf("%s\n", text);
    return blksum_btrfs_verdict(btrfs, error);
}

int main(int argc, char **argv)
{
    struct blksum_error *error = NULL;
    size_t count = (size_t)(argc - 1), opened = 0;
    struct blksum_image **images;
    struct blksum_btrfs *btrfs = NULL;
    int result = -1;

    images = (struct blksum_image **)calloc(count + 1, sizeof *images);
    if (images == NULL)
        return 2;
    while (opened < count) {
        images[opened] = blksum_image_open(argv[opened + 1], NULL, &error);
        if (images[opened] == NULL)
            break;
        opened++;
    }
    if (opened == count)
        btrfs = blksum_btrfs_verify((const struct blksum_image *const *)images, count, NULL, NULL,
                                    NULL, &error);
    if (btrfs != NULL)
        result = print(btrfs, &error);
    if (error != NULL)
        fprintf(stderr, "btrfs: %s\n", blksum_error_message(error));
    blksum_error_free(error);
    blksum_btrfs_free(btrfs);
    while (opened > 0)
        blksum_image_close(images[--opened]);
    free(images);
    return result < 0 ? 2 : result;
}
