/* Runs the verbs of libblksum that standard input names, one in a line, for tests/libraries/test_c_library.py. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <blksum.h>

static struct blksum_error *error;

/* Ends the line with the reason of a failure. */
static void fail(void)
{
    printf("error %d %s\n", blksum_error_kind(error), blksum_error_message(error));
    blksum_error_free(error);
    error = NULL;
}

/* Cancels work once it has created a file. */
static int exists(void *path, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return access(path, F_OK) == 0;
}

static void print_hex(const unsigned char *md, unsigned int len)
{
    for (unsigned int i = 0; i < len; i++)
        printf("%02x", md[i]);
}

static void print_diff(struct blksum_diff *diff)
{
    static const char *const kinds[] = {"changed",   "zeroed",     "written",
                                        "left-only", "right-only", "unknown"};
    struct blksum_difference it;

    if (diff == NULL) {
        fail();
        return;
    }
    for (size_t i = 0; (int64_t)i < blksum_diff_count(diff, NULL); i++) {
        blksum_diff_get(diff, i, &it, NULL);
        printf("%llu:%llu:%s ", (unsigned long long)it.offset, (unsigned long long)it.length,
               kinds[it.kind]);
    }
    printf("\n");
    blksum_diff_free(diff);
}

/* Prints the extents, and reads the data in them: the digest of all of it equals the content's. */
static void extents(struct blksum_image *image, FILE *copy)
{
    struct blksum_extent it;
    uint64_t at = 0;
    int found;

    while ((found = blksum_image_extent(image, at, &it, &error)) == 1) {
        printf("%llu:%s ", (unsigned long long)it.length, it.kind ? "zero" : "data");
        for (uint64_t done = 0; it.kind == BLKSUM_EXTENT_DATA && done < it.length;) {
            static unsigned char buf[1 << 20];
            uint64_t left = it.length - done;
            size_t len = left < sizeof buf ? (size_t)left : sizeof buf;

            if (blksum_image_read(image, buf, len, it.offset + done, &error) != 0) {
                fail();
                return;
            }
            fseek(copy, (long)(it.offset + done), SEEK_SET);
            fwrite(buf, 1, len, copy);
            done += len;
        }
        at += it.length;
    }
    if (found != 0)
        fail();
    else
        printf("\n");
}

/* Prints a field of a record. A number that there is not is UINT64_MAX. */
static void field(const char *text)
{
    printf("%s\037", text ? text : "-");
}

static void number(uint64_t value)
{
    if (value == UINT64_MAX)
        field(NULL);
    else
        printf("%llu\037", (unsigned long long)value);
}

/* Prints the layers of a check, its findings, and its verdict. */
static void health(struct blksum_check *check)
{
    static const char *const verdicts[] = {"clean", "damaged", "incomplete"};
    static const char *const problems[] = {"mismatch", "damaged", "unreadable", "skipped"};
    struct blksum_check_layer layer;
    struct blksum_check_finding it;
    const char *text;

    if (check == NULL) {
        fail();
        return;
    }
    for (size_t i = 0; (int64_t)i < blksum_check_layers(check, NULL); i++) {
        blksum_check_layer(check, i, &layer, NULL);
        field(layer.place);
        field(layer.kind);
        field(layer.label);
        field(layer.uuid);
        field(verdicts[layer.verdict]);
        uint64_t numbers[] = {layer.partition ? layer.partition : UINT64_MAX,
                              layer.offset,
                              layer.length,
                              layer.verified,
                              layer.verified_bytes,
                              layer.unprotected_bytes,
                              layer.mismatches,
                              layer.damaged,
                              layer.unreadable,
                              layer.skipped,
                              layer.leaks,
                              layer.outdated};
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            number(numbers[j]);
        for (size_t j = 0; (text = blksum_check_remark(check, i, j)) != NULL; j++)
            field(text);
        printf("\036");
    }
    for (size_t i = 0; (int64_t)i < blksum_check_count(check, NULL); i++) {
        blksum_check_get(check, i, &it, NULL);
        blksum_check_layer(check, it.layer, &layer, NULL);
        field(layer.place);
        field(layer.kind);
        field(problems[it.problem]);
        field(it.structure);
        field(it.reason);
        uint64_t numbers[] = {it.offset, it.layer_offset, it.length, it.object, it.count};
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            number(numbers[j]);
        for (size_t j = 0; (text = blksum_check_file(check, i, j)) != NULL; j++)
            field(text);
        printf("\036");
    }
    printf("%s\n", verdicts[blksum_check_verdict(check, NULL)]);
    blksum_check_free(check);
}

static void print_owners(struct blksum_owners *owners)
{
    static const char *const kinds[] = {"file", "metadata", "journal", "free", "unknown"};
    struct blksum_owned it;
    const char *text;

    if (owners == NULL) {
        fail();
        return;
    }
    for (size_t i = 0; (int64_t)i < blksum_owners_count(owners, NULL); i++) {
        blksum_owners_get(owners, i, &it, NULL);
        field(kinds[it.kind]);
        field(it.file_system);
        field(it.structure);
        number(it.partition ? it.partition : UINT64_MAX);
        number(it.offset);
        number(it.length);
        number(it.object);
        number(it.file_offset);
        for (size_t j = 0; (text = blksum_owners_name(owners, i, j)) != NULL; j++)
            field(text);
        printf("\036");
    }
    for (size_t i = 0; (text = blksum_owners_remark(owners, i)) != NULL; i++)
        field(text);
    printf("end\n");
    blksum_owners_free(owners);
}

/* Checks each block of an image against a map, or gives each block to a maker, from the last one to the first. */
static void blocks(struct blksum_image *image, struct blksum_map *map, struct blksum_maker *maker,
                   uint64_t size, uint64_t block_size)
{
    unsigned char *buf = malloc(block_size);
    uint64_t count = (size + block_size - 1) / block_size;

    for (uint64_t i = count; i-- > 0;) {
        uint64_t at = i * block_size, len = size - at < block_size ? size - at : block_size, bad = i;
        int verdict = 0;

        if (blksum_image_read(image, buf, len, at, &error) != 0)
            verdict = -1;
        else if (map != NULL)
            verdict = blksum_map_check(map, buf, len, at, &bad, &error);
        else
            verdict = blksum_maker_add(maker, buf, len, at, &error);
        if (verdict == -1) {
            fail();
            free(buf);
            return;
        }
        if (verdict != BLKSUM_EQUAL)
            printf("%llu:%d ", (unsigned long long)bad, verdict);
    }
    printf("\n");
    free(buf);
}

static void run(char **word, int words, struct blksum_opts *opts)
{
    struct blksum_image *image = NULL, *other = NULL;
    struct blksum_map *map = NULL, *other_map = NULL;
    struct blksum_maker *maker = NULL;
    unsigned char md[BLKSUM_MAX_MD_SIZE];
    char tag[256] = "";
    unsigned int len;
    uint64_t size = 0, block_size = 65536;
    const char *verb = word[0];

    if (strcmp(verb, "opt") == 0) {
        if (blksum_opts_set(opts, word[1], words > 2 ? word[2] : NULL, &error) != 0)
            fail();
        else
            printf("\n");
        return;
    }
    if (strcmp(verb, "diff") != 0) {
        image = blksum_image_open(word[1], opts, &error);
        if (image == NULL) {
            fail();
            return;
        }
        blksum_image_size(image, &size, NULL);
    }
    if (strcmp(verb, "verify") == 0 || strcmp(verb, "check") == 0)
        map = blksum_map_open(word[2], NULL, &error);
    if (strcmp(verb, "checksum") == 0) {
        if (blksum_image_checksum(image, opts, NULL, NULL, md, &len, &error) != 0) {
            fail();
        } else {
            print_hex(md, len);
            printf(" %llu %s\n", (unsigned long long)size, blksum_image_format(image, NULL));
        }
    } else if (strcmp(verb, "expect") == 0) {
        int verdict =
            blksum_image_expect(image, word[2], NULL, NULL, NULL, tag, sizeof tag, &error);

        if (verdict == -1)
            fail();
        else
            printf("%d %s\n", verdict, tag);
    } else if (strcmp(verb, "extents") == 0) {
        FILE *copy = fopen(word[2], "wb");

        extents(image, copy);
        fclose(copy);
    } else if (strcmp(verb, "create") == 0) {
        if (blksum_map_create(word[2], image, opts, NULL, NULL, &error) != 0)
            fail();
        else
            printf("\n");
    } else if (strcmp(verb, "cancel") == 0) {
        if (blksum_map_create(word[2], image, opts, exists, word[2], &error) != 0)
            fail();
        else
            printf("\n");
    } else if (strcmp(verb, "make") == 0) {
        if (words > 3)
            block_size = strtoull(word[3], NULL, 10);
        maker = blksum_maker_new(size, opts, &error);
        if (maker == NULL) {
            fail();
        } else {
            blocks(image, NULL, maker, size, block_size);
            if (blksum_maker_write(maker, word[2], &error) != 0)
                fail();
        }
    } else if (strcmp(verb, "verify") == 0) {
        print_diff(map ? blksum_map_verify(map, image, NULL, NULL, NULL, &error) : NULL);
    } else if (strcmp(verb, "check") == 0) {
        if (map == NULL) {
            fail();
        } else {
            blksum_map_block_size(map, &block_size, NULL);
            blocks(image, map, NULL, size, block_size);
        }
    } else if (strcmp(verb, "health") == 0) {
        health(blksum_image_check(image, opts, NULL, NULL, &error));
    } else if (strcmp(verb, "owners") == 0) {
        print_owners(blksum_image_owners(image, strtoull(word[2], NULL, 10),
                                         strtoull(word[3], NULL, 10), opts, &error));
    } else if (strcmp(verb, "compare") == 0) {
        other = blksum_image_open(word[2], NULL, &error);
        print_diff(other ? blksum_image_diff(image, other, opts, NULL, NULL, &error) : NULL);
    } else if (strcmp(verb, "diff") == 0) {
        map = blksum_map_open(word[1], NULL, &error);
        other_map = map ? blksum_map_open(word[2], NULL, &error) : NULL;
        print_diff(other_map ? blksum_map_diff(map, other_map, NULL, &error) : NULL);
    }
    blksum_maker_free(maker);
    blksum_map_close(map);
    blksum_map_close(other_map);
    blksum_image_close(image);
    blksum_image_close(other);
}

int main(void)
{
    static char line[65536];
    struct blksum_opts *opts = blksum_opts_new();

    while (fgets(line, sizeof line, stdin) != NULL) {
        char *word[8] = {0}, *rest = line;
        int words = 0;

        while (words < 8 && (word[words] = strsep(&rest, " \n")) != NULL && *word[words] != 0)
            words++;
        run(word, words, opts);
        fflush(stdout);
    }
    blksum_opts_free(opts);
    return 0;
}
