/* Prints the checksum of a file: hash-file FILE */

#include <stdio.h>
#include <string.h>

#include <blkhash.h>

int main(int argc, char **argv)
{
    static unsigned char buf[1024 * 1024];
    unsigned char md[BLKHASH_MAX_MD_SIZE];
    unsigned int len;
    struct blkhash *h = blkhash_new();
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    size_t count;
    int err;

    if (h == NULL || file == NULL) {
        perror("hash-file");
        return 1;
    }
    while ((count = fread(buf, 1, sizeof buf, file)) > 0)
        blkhash_update(h, buf, count);

    /* An error of an update comes back here. */
    err = blkhash_final(h, md, &len);
    if (err || ferror(file)) {
        fprintf(stderr, "hash-file: %s\n", err ? strerror(err) : "cannot read");
        return 1;
    }
    for (unsigned int i = 0; i < len; i++)
        printf("%02x", md[i]);
    printf("  %s\n", argv[1]);

    fclose(file);
    blkhash_free(h);
    return 0;
}
