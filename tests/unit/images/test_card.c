/* SPDX-License-Identifier: Apache-2.0 */
#include "images/card.h"
#include "tests/support/check.h"

static const char *const names[] = {"cat", "a|b <script>", "line\nbreak `x`", "tac\u202e www.a.org https://b"};
static const uint64_t counts[] = {100, 200, 300, 1};
static const struct fkt_card_hash hashes[] = {{"release", "9f86d081"}, {"task", "ab`|<cd"}};

static struct fkt_card plain(void)
{
    return (struct fkt_card){.name = "EuroSAT: \"synthetic\" #1",
                             .classes = names,
                             .counts = counts,
                             .n_classes = 3,
                             .size = 32,
                             .format = "ImageFolder",
                             .split = "train",
                             .epsilon = 1.5,
                             .delta = 1e-5,
                             .mu = 0.4,
                             .adjacency = "add-remove",
                             .hides = "whether any one image was used at all, what it shows, and its label",
                             .mechanism = "joint",
                             .codec = "dct/1 size=32 dim=64",
                             .sites = 12,
                             .calibration = "analytic natural-image spectrum",
                             .hashes = hashes,
                             .n_hashes = 2,
                             .version = "0.1.0"};
}

static char *text_of(struct fkt_text *t, const struct fkt_card *c)
{
    fkt_text_clear(t);
    CHECK_OK(fkt_card_text(t, c));
    return t->s;
}

static void the_promise_stands_in_words_and_numbers(void **state)
{
    struct fkt_card c = plain();
    struct fkt_text t;
    char *s;
    (void)state;
    fkt_text_init(&t);
    s = text_of(&t, &c);
    CHECK(!strncmp(s, "---\npretty_name: \"EuroSAT: \\\"synthetic\\\" #1\"\nlicense: other\n", 60));
    CHECK(strstr(s, "- differential-privacy\n") && strstr(s, "- n<1K\n") && strstr(s, "- image-classification\n"));
    CHECK(strstr(s, "# EuroSAT: \"synthetic\" \\#1"));
    CHECK(strstr(s, "epsilon = 1.5, delta = 1e-05") && strstr(s, "| mu (Gaussian DP) | 0.4 |"));
    CHECK(strstr(s, "whether any one image was used at all, what it shows, and its label"));
    CHECK(strstr(s, "600 images of 32 x 32 pixels in 3 classes") && strstr(s, "12 sites"));
    CHECK(strstr(s, "  - split: train\n    path: train/**\n  features:\n"));
    CHECK(strstr(s, "        names:\n          '0': \"cat\"\n          '1': \"a|b \\U0000003cscript\\U0000003e\"\n"));
    CHECK(strstr(s, "load_dataset(\".\", split=\"train\")") && strstr(s, "| 0 | cat | 100 |"));
    CHECK(!strstr(s, "NOT PRIVATE"));
    c.format = "npz";
    CHECK(strstr(text_of(&t, &c), "z[\"train_images\"]") && !strstr(text_of(&t, &c), "configs:"));
    c.format = "WebDataset";
    CHECK(strstr(text_of(&t, &c), "train-*.tar"));
    fkt_text_clear(&t);
    CHECK(fkt_alloc_live() == 0);
}

static void strange_names_are_escaped(void **state)
{
    struct fkt_card c = plain();
    struct fkt_text t;
    char *s;
    (void)state;
    fkt_text_init(&t);
    s = text_of(&t, &c);
    CHECK(!strstr(s, "<script>") && strstr(s, "| 1 | a\\|b &lt;script&gt; | 200 |"));
    CHECK(strstr(s, "| 2 | line break \\`x\\` | 300 |"));
    CHECK(strstr(s, "`abcd`"));
    c.n_classes = 4;
    s = text_of(&t, &c); /* nothing turns the writing around, and no link is made of what looks like one */
    CHECK(strstr(s, "| 3 | tac  www&#46;a.org https&#58;//b | 1 |"));
    c.name = "me@example.org";
    CHECK(strstr(text_of(&t, &c), "# me&#64;example.org\n"));
    fkt_text_clear(&t);
}

static void what_is_not_private_says_so(void **state)
{
    struct fkt_card c = plain();
    struct fkt_text t;
    (void)state;
    fkt_text_init(&t);
    c.insecure_seed = 1;
    CHECK(strstr(text_of(&t, &c), "NOT PRIVATE: made with a fixed seed"));
    CHECK(!strstr(t.s, "- differential-privacy\n"));
    for (int i = 0; i < 3; i++) {
        const double none[] = {0, INFINITY, NAN};
        c = plain();
        c.epsilon = none[i];
        CHECK(strstr(text_of(&t, &c), "NOT PRIVATE: no noise was added"));
        CHECK(!strstr(t.s, "differential") && !strstr(t.s, "epsilon"));
    }
    c.classes = NULL;
    CHECK_STATUS(fkt_card_text(&t, &c), FKT_E_ARG);
    fkt_text_clear(&t);
}

static void the_publisher_is_named(void **state)
{
    static const struct fkt_croissant_files files = {"aa", "bb", "0123456789abcdef"};
    struct fkt_card c = plain();
    struct fkt_text t;
    char *s;
    (void)state;
    fkt_text_init(&t);
    CHECK(strstr(text_of(&t, &c), "license: other\nlicense_name: unknown\n") && !strstr(t.s, "| creator |"));
    c.publisher = (struct fkt_publisher){"CC-BY-4.0", "A \"B\"", "https://example.org/x", "2026-11-17"};
    c.data = "data/";
    s = text_of(&t, &c);
    CHECK(strstr(s, "\nlicense: cc-by-4.0\n") && strstr(s, "| creator | A \"B\" |\n"));
    CHECK(strstr(s, "    path: data/train/**\n") && strstr(s, "ImageFolder(\"data/train\")"));
    c.publisher.license = "EUPL-1.2";
    CHECK(strstr(text_of(&t, &c), "license: other\nlicense_name: EUPL-1.2\n"));
    fkt_text_clear(&t);
    CHECK_OK(fkt_croissant_text(&t, &c, &files));
    CHECK(strstr(t.s, "\"license\": \"https://spdx.org/licenses/EUPL-1.2\"") &&
          strstr(t.s, "\"version\": \"1.0.0+0123456789ab\""));
    CHECK(strstr(t.s, "\"creator\": {\"@type\": \"Organization\", \"name\": \"A \\\"B\\\"\"}"));
    CHECK(strstr(t.s, "\"includes\": \"data/train/*/*.png\"") &&
          strstr(t.s, "\"classes/name\": \"line\\u000abreak `x`\""));
    CHECK(strstr(t.s, "(epsilon = 1.5, delta = 1e-05)-differential privacy") &&
          strstr(t.s, "\"differential privacy\""));
    c.insecure_seed = 1;
    fkt_text_clear(&t);
    CHECK_OK(fkt_croissant_text(&t, &c, &files));
    CHECK(strstr(t.s, "NOT PRIVATE") && !strstr(t.s, "ifferential"));
    c.classes = NULL;
    CHECK_STATUS(fkt_croissant_text(&t, &c, &files), FKT_E_ARG);
    fkt_text_clear(&t);
    CHECK(fkt_alloc_live() == 0);
}

static void what_is_not_a_publisher_is_refused(void **state)
{
    static const struct fkt_publisher good[] = {
        {0}, {"GPL-2.0+", "x", "http://a", "2024-02-29"}, {.creator = "\u00c9cole"}, {.published = "1999-12-31"}};
    static const struct fkt_publisher bad[] = {{.license = ""},
                                               {.license = "CC BY 4.0"},
                                               {.license = "x\"y"},
                                               {.creator = ""},
                                               {.creator = "a\nb"},
                                               {.url = ""},
                                               {.url = "example.org"},
                                               {.url = "https://"},
                                               {.url = "https:///x"},
                                               {.url = "https://a b"},
                                               {.url = "https://a/\"x"},
                                               {.url = "javascript:1"},
                                               {.published = ""},
                                               {.published = "2026-13-01"},
                                               {.published = "2026-02-30"},
                                               {.published = "2026-1-01x"},
                                               {.published = "17.11.2026"}};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK_OK(fkt_publisher_check(&good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_STATUS(fkt_publisher_check(&bad[i]), FKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_promise_stands_in_words_and_numbers),
        cmocka_unit_test(strange_names_are_escaped),
        cmocka_unit_test(what_is_not_private_says_so),
        cmocka_unit_test(the_publisher_is_named),
        cmocka_unit_test(what_is_not_a_publisher_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
