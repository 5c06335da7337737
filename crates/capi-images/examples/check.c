/* Checks an image, and prints what is wrong and the owners of its bytes: check IMAGE */

#include <stdio.h>

#include <blksum.h>

/* Prints the names of the files and structures that length bytes at offset belong to. */
static void print_owners(const struct blksum_image *image, uint64_t offset, uint64_t length)
{
    struct blksum_owners *owners = blksum_image_owners(image, offset, length, NULL, NULL);
    int64_t count = owners == NULL ? 0 : blksum_owners_count(owners, NULL);
    struct blksum_owned it;
    const char *name;

    for (int64_t i = 0; i < count; i++) {
        if (blksum_owners_get(owners, (size_t)i, &it, NULL) != 0)
            break;
        if (it.structure != NULL)
            printf("  %s\n", it.structure);
        for (size_t j = 0; (name = blksum_owners_name(owners, (size_t)i, j)) != NULL; j++)
            printf("  %s\n", name);
    }
    blksum_owners_free(owners);
}

static int print(const struct blksum_image *image, const struct blksum_check *check,
                 struct blksum_error **error)
{
    int64_t count = blksum_check_count(check, error);

    for (int64_t i = 0; i < count; i++) {
        struct blksum_check_finding it;
        struct blksum_check_layer layer;

        if (blksum_check_get(check, (size_t)i, &it, error) != 0 ||
            blksum_check_layer(check, (size_t)it.layer, &layer, error) != 0)
            return -1;
        printf("%s, %s, %s at %llu: %s\n", layer.place, layer.kind, it.structure,
               (unsigned long long)it.offset, it.reason);
        /* The structure of the image itself is in its file, and not in the content. */
        if (layer.leaks == UINT64_MAX)
            print_owners(image, it.offset, it.length > 0 ? it.length : 1);
    }
    return blksum_check_verdict(check, error);
}

int main(int argc, char **argv)
{
    struct blksum_error *error = NULL;
    struct blksum_image *image;
    struct blksum_check *check = NULL;
    int result = -1;

    if (argc != 2) {
        fprintf(stderr, "usage: check IMAGE\n");
        return 2;
    }
    image = blksum_image_open(argv[1], NULL, &error);
    if (image != NULL)
        check = blksum_image_check(image, NULL, NULL, NULL, &error);
    if (check != NULL)
        result = print(image, check, &error);
    if (error != NULL)
        fprintf(stderr, "check: %s\n", blksum_error_message(error));
    blksum_error_free(error);
    blksum_check_free(check);
    blksum_image_close(image);
    return result < 0 ? 2 : result;
}
