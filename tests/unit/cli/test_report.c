/* SPDX-License-Identifier: Apache-2.0 */
/* A whole report from invented but plausible numbers. FEDKT_KEEP=DIR keeps the pages there, to look at. */
#include "base/file.h"
#include "base/rng.h"
#include "cli/simulate/report.h"
#include "fedkt/image.h"
#include "images/procedural_scenes.h"
#include "tests/support/check.h"

#include <ctype.h>
#include <unistd.h>

enum { K = FKT_DEMO_CLASSES, SITES = 20, BINS = 48, TILES = 6, BYTES = FKT_DEMO_SIDE * FKT_DEMO_SIDE * 3 };

static const char evil[] = "<script>alert('x')</script> & \"q\" \xff\x01\u202e";

struct sample {
    struct fkt_report report;
    struct fkt_report_arm arms[3];
    struct fkt_report_network networks[2];
    struct fkt_report_part parts[2];
    const char *names[K];
    uint64_t counts[K], bins[BINS];
    uint32_t owned[SITES * K];
    double noisy[3][K], signal[3][K];
    uint8_t *png[4];
    size_t len[4];
};

static const struct fkt_report_mark marks[] = {{"c \xe2\x88\x92 s", 1.1}, {"c", 2.0}, {"c + s", 2.9}};
static const struct fkt_report_phase phases[] = {
    {"encode", 2.31}, {"moments", 0.42}, {"aggregate", 0.05}, {"release", 0.61}, {"generate", 3.9}};
static const struct fkt_report_pair facts[] = {
    {"moments SHA-256", "0f343b0931126a20f133d67c2b018a3b5c0b3b1a54e0c6b1ee28eb0cbb1a7a3d"},
    {"release SHA-256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}};

static void make_grid(struct sample *s, int which, double noise)
{
    uint8_t *tiles = malloc((size_t)K * TILES * BYTES), *rgb = NULL;
    struct fkt_rng r;
    uint32_t w, h;
    fkt_rng_init(&r, 5, (uint64_t)which);
    for (unsigned k = 0; k < K; k++)
        for (unsigned i = 0; i < TILES; i++) {
            uint8_t *tile = tiles + (size_t)(k * TILES + i) * BYTES;
            fkt_demo_draw(tile, 1, k, i + (unsigned)which * TILES);
            for (size_t p = 0; p < BYTES; p++)
                tile[p] = (uint8_t)fmax(0, fmin(255, tile[p] + noise * fkt_rng_normal(&r)));
        }
    CHECK_OK(fkt_grid(&rgb, &w, &h, tiles, K, TILES, FKT_DEMO_SIDE, s->names));
    CHECK_OK(fkt_png_encode(&s->png[which], &s->len[which], rgb, w, h));
    fkt_image_free(rgb);
    free(tiles);
}

static void make_numbers(struct sample *s)
{
    struct fkt_rng r;
    fkt_rng_init(&r, 1, 0);
    for (unsigned k = 0; k < K; k++) {
        s->names[k] = fkt_demo_class(k);
        for (unsigned i = 0; i < SITES; i++) {
            s->owned[i * K + k] = (uint32_t)(60 * exp(fkt_rng_log_gamma(&r, 0.5)));
            s->counts[k] += s->owned[i * K + k];
        }
        for (int a = 0; a < 3; a++) {
            s->noisy[a][k] =
                (double)s->counts[k] + (a ? 0 : 37) * fkt_rng_normal(&r) + (a == 1 ? 5 : 0) * fkt_rng_normal(&r);
            s->signal[a][k] = (a == 0 ? 0.6 : a == 1 ? 5 : 900) * exp(0.5 * fkt_rng_normal(&r));
        }
        s->report.records += s->counts[k];
    }
    for (int i = 0; i < 6000; i++) {
        double x = 2 + 0.35 * fkt_rng_normal(&r);
        if (x > 0 && x < 4) s->bins[(int)(x * BINS / 4)]++;
    }
}

static void make(struct sample *s)
{
    static const char *const protects = "whether any one image was used at all, what it shows, and its label";
    memset(s, 0, sizeof *s);
    make_numbers(s);
    for (int g = 0; g < 4; g++) make_grid(s, g, g == 1 ? 34 : g == 2 ? 14 : 0);
    s->arms[0] = (struct fkt_report_arm){.name = "epsilon 1",
                                         .epsilon = 1,
                                         .delta = 1e-5,
                                         .mu = 0.2607,
                                         .sigma_count = 37,
                                         .part = {{7.6, 4.31, NULL, NULL}},
                                         .adjacency = "add-remove",
                                         .protects = protects,
                                         .mechanism = "joint",
                                         .accuracy = {0.712, 0.764, 0.701, 0.733}};
    s->arms[1] = (struct fkt_report_arm){.name = "epsilon 10",
                                         .epsilon = 10,
                                         .delta = 1e-5,
                                         .mu = 1.987,
                                         .sigma_count = 5,
                                         .part = {{1.02, 0.577, NULL, NULL}},
                                         .adjacency = "add-remove",
                                         .protects = protects,
                                         .mechanism = "joint",
                                         .accuracy = {0.817, 0.871, 0.902, 0.911}};
    s->networks[0] = (struct fkt_report_network){
        "codec", "dct/1 size=32 dim=64", "analytic natural-image spectrum", "gain-shape, gamma 0.35", 64, 65, 256};
    s->parts[0] = (struct fkt_report_part){"codec", 0};
    s->arms[2] = (struct fkt_report_arm){.name = "no privacy", .accuracy = {0.826, 0.880, 0.975, 0.969}};
    for (int a = 0; a < 3; a++) {
        s->arms[a].noisy_count = s->noisy[a];
        s->arms[a].part[0].signal = s->signal[a];
        s->arms[a].grid_png = s->png[a + 1];
        s->arms[a].grid_len = s->len[a + 1];
    }
    s->arms[2].noisy_count = NULL;
    s->report =
        (struct fkt_report){.title = "Demo images, synthesised",
                            .command = "fedkt demo --out demo --sites 20 --partition dirichlet:0.5 --epsilon 1,10",
                            .dataset = "demo:train",
                            .format = "procedural demo",
                            .partition = "dirichlet:0.5",
                            .size = 32,
                            .networks = s->networks,
                            .n_networks = 1,
                            .parts = s->parts,
                            .n_parts = 1,
                            .classes = s->names,
                            .n_classes = K,
                            .sites = SITES,
                            .survivors = SITES,
                            .records = s->report.records,
                            .test_records = 1500,
                            .counts = s->counts,
                            .owned = s->owned,
                            .norms = {"log |u|", s->bins, BINS, 0, 4, marks, 3},
                            .real_png = s->png[0],
                            .real_len = s->len[0],
                            .arms = s->arms,
                            .n_arms = 3,
                            .phases = phases,
                            .n_phases = 5,
                            .bytes_per_site = 176880,
                            .facts = facts,
                            .n_facts = 2,
                            .version = "0.1.0"};
}

static void unmake(struct sample *s)
{
    for (int g = 0; g < 4; g++) fkt_image_free(s->png[g]);
    CHECK(fkt_alloc_live() == 0);
}

static char *render(const struct fkt_report *r, const char *name)
{
    char dir[] = "/tmp/fkt_report_XXXXXX", path[512];
    const char *keep = getenv("FEDKT_KEEP");
    uint8_t *bytes = NULL;
    size_t len;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/%s", keep ? keep : dir, name);
    CHECK_OK(fkt_report_write(r, path, keep != NULL));
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 26));
    CHECK(strlen((char *)bytes) == len);
    if (!keep) CHECK_STATUS(fkt_report_write(r, path, 0), FKT_E_EXISTS);
    if (access("/usr/bin/python3", X_OK) == 0) {
        char command[2048];
        snprintf(command, sizeof command,
                 "/usr/bin/python3 -c \""
                 "import sys, html.parser\n"
                 "void = {'meta', 'img', 'br', 'rect', 'line'}\n"
                 "class P(html.parser.HTMLParser):\n"
                 "    stack = []\n"
                 "    def handle_starttag(self, tag, attrs):\n"
                 "        assert tag not in ('script', 'link', 'iframe', 'object'), tag\n"
                 "        for k, v in attrs: assert not k.startswith('on') and not (k in ('src', 'href') and not "
                 "v.startswith('data:')), (k, v)\n"
                 "        if tag not in void: self.stack.append(tag)\n"
                 "    def handle_startendtag(self, tag, attrs): assert tag in void, tag\n"
                 "    def handle_endtag(self, tag): assert self.stack.pop() == tag, tag\n"
                 "p = P(); p.feed(open(sys.argv[1], encoding='utf-8').read()); p.close(); assert not p.stack\n"
                 "\" '%s'",
                 path);
        CHECK(system(command) == 0);
    }
    if (!keep) unlink(path);
    rmdir(dir);
    return (char *)bytes;
}

/* The page without the letters of its images, in which any three may stand side by side. */
static void drop_images(char *page)
{
    char *at = page, *end;
    while ((at = strstr(at, "base64,"))) {
        at += strlen("base64,");
        end = strchr(at, '"');
        CHECK(end);
        memmove(at, end, strlen(end) + 1);
    }
}

static size_t occurrences(const char *s, const char *what)
{
    size_t n = 0;
    for (; (s = strstr(s, what)); s += strlen(what)) n++;
    return n;
}

/* 1 when `word` stands in the page with no letter beside it. */
static int has_word(const char *page, const char *word)
{
    for (const char *s = page; (s = strstr(s, word)); s++)
        if (!isalpha((unsigned char)s[-1]) && !isalpha((unsigned char)s[strlen(word)])) return 1;
    return 0;
}

static const char *section(const char *page, const char *id)
{
    char tag[64];
    const char *s;
    snprintf(tag, sizeof tag, "<section id=\"%s\">", id);
    s = strstr(page, tag);
    if (!s) fail_msg("no section '%s'", id);
    return s;
}

static void every_section_stands_in_its_place(void **state)
{
    static const char *const ids[] = {"summary",   "privacy", "images", "accuracy",  "classes",
                                      "partition", "norms",   "cost",   "provenance"};
    static const int badged[] = {0, 0, 0, 1, 0, 1, 1, 0, 0};
    struct sample s;
    char *page;
    const char *last;
    (void)state;
    make(&s);
    page = render(&s.report, "report.html");
    last = page;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *at = section(page, ids[i]), *end = strstr(at, "</h2>"), *badge = strstr(at, "class=\"badge\"");
        CHECK(at > last || i == 0);
        CHECK((badge && badge < end) == badged[i]);
        last = at;
    }
    CHECK(occurrences(page, "data:image/png;base64,iVBORw0KGgo") == 4);
    CHECK(strstr(section(page, "images"), "Real images<span class=\"badge\">"));
    CHECK(strstr(section(page, "images"), "Synthetic: epsilon 1</figcaption>"));
    CHECK(strstr(section(page, "images"), "Synthetic: no privacy<span class=\"badge\">"));
    CHECK(strstr(section(page, "classes"), "true count<br><span class=\"badge\">"));
    CHECK(strstr(section(page, "classes"), "below noise</span>"));
    CHECK(strstr(section(page, "privacy"), "at most <strong>55.2 %</strong>")); /* 100 Phi(0.2607 / 2) = 55.186 */
    CHECK(strstr(section(page, "privacy"), "adjacency</dt><dd>add-remove"));
    CHECK(strstr(section(page, "norms"), "c + s</text>"));
    CHECK(strstr(section(page, "cost"), "177 kB"));
    CHECK(strstr(section(page, "provenance"), "9f86d081884c7d65"));
    drop_images(page);
    CHECK(!strstr(page, "class=\"banner\"") && !has_word(page, "nan") && !has_word(page, "inf") &&
          !strstr(page, "http"));
    fkt_free(page);
    unmake(&s);
}

static void the_sum_is_told(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.report.aggregation = (struct fkt_report_aggregation){.sites = 20,
                                                           .survivors = 18,
                                                           .dropped = 2,
                                                           .corrupt = 2,
                                                           .degree = 19,
                                                           .threshold = 11,
                                                           .bits = 35,
                                                           .counted = 16,
                                                           .up = 99000,
                                                           .down = 5400,
                                                           .packed = 96732,
                                                           .seconds = 0.31};
    page = render(&s.report, "sum.html");
    CHECK(strstr(section(page, "privacy"), "(Gaussian DP)"));
    CHECK(strstr(section(page, "aggregation"), "18 of 20 sites are in the sum"));
    CHECK(strstr(section(page, "aggregation"), "The promise needs 16 noise shares; 18 are in the sum"));
    CHECK(strstr(section(page, "aggregation"), "12 % more variance"));
    CHECK(section(page, "aggregation") < section(page, "cost"));
    fkt_free(page);
    s.report.aggregation.counted = 0;
    page = render(&s.report, "central.html");
    CHECK(strstr(section(page, "aggregation"), "the party that added it saw the exact sum"));
    fkt_free(page);
    unmake(&s);
}

static void strings_of_strangers_are_escaped(void **state)
{
    static const struct fkt_report_mark mark = {evil, 2};
    static const struct fkt_report_phase phase = {evil, 1};
    static const struct fkt_report_pair pair = {evil, evil};
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.report.title = s.report.command = s.report.dataset = s.report.format = s.report.network =
        s.report.network_recipe = evil;
    for (int i = 0; i < 2; i++) {
        s.networks[i] = (struct fkt_report_network){evil, evil, evil, evil, 64, 65, 256};
        s.parts[i].name = evil;
        for (int a = 0; a < 3; a++) s.arms[a].part[i] = s.arms[a].part[0];
    }
    s.report.n_networks = s.report.n_parts = 2;
    s.report.partition = s.report.version = s.report.norms.quantity = evil;
    s.report.norms.marks = &mark;
    s.report.norms.n_marks = 1;
    s.report.phases = &phase;
    s.report.n_phases = 1;
    s.report.facts = &pair;
    s.report.n_facts = 1;
    for (int k = 0; k < K; k++) s.names[k] = evil;
    for (int a = 0; a < 3; a++) s.arms[a].name = s.arms[a].adjacency = s.arms[a].protects = s.arms[a].mechanism = evil;
    page = render(&s.report, "evil.html");
    CHECK(!strstr(page, "<script") && !strstr(page, "alert('") && !strchr(page, '\x01') && !strchr(page, '\xff'));
    CHECK(!strstr(page, "\u202e"));
    CHECK(occurrences(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;q&quot; \xef\xbf\xbd") > 30);
    fkt_free(page);
    unmake(&s);
}

static void a_fixed_seed_is_told_in_red(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.report.insecure_seed = 1;
    page = render(&s.report, "insecure.html");
    CHECK(strstr(page, "<div class=\"banner\" role=\"alert\">Made with --insecure-seed"));
    CHECK(!strstr(page, "<strong>Protected:</strong>") && !strstr(page, "anyone may train on"));
    CHECK(strstr(page, "Synthetic: epsilon 1<span class=\"badge\">"));
    fkt_free(page);
    unmake(&s);
}

static void large_and_empty_runs_fit(void **state)
{
    static uint32_t owned[1000 * 200];
    static char text[200][12];
    static const char *names[200];
    struct fkt_report r = {
        .title = "large", .classes = names, .n_classes = 200, .sites = 1000, .survivors = 950, .owned = owned};
    char *page;
    (void)state;
    for (int k = 0; k < 200; k++) {
        snprintf(text[k], sizeof text[k], "class %d", k);
        names[k] = text[k];
    }
    for (size_t i = 0; i < 1000 * 200; i++) owned[i] = (uint32_t)(i * 7919 % 13);
    page = render(&r, "large.html");
    CHECK(occurrences(page, "class=\"cell\"") <= 6000 && occurrences(page, "class=\"cell\"") > 5000 &&
          strlen(page) < 2000000);
    CHECK(strstr(page, "1000 sites, in 100 bins of about 10") && strstr(page, "classes 0 to 2<"));
    fkt_free(page);
    r = (struct fkt_report){.title = "empty", .classes = names, .n_classes = 1};
    page = render(&r, "empty.html");
    CHECK(section(page, "provenance") && !strstr(page, "id=\"partition\"") && !strstr(page, "id=\"pictures\""));
    fkt_free(page);
    r.classes = NULL;
    CHECK_STATUS(fkt_report_write(&r, "/tmp/never.html", 0), FKT_E_ARG);
}

/* What is called below noise, and the sentence that explains the word, must agree. */
static void below_noise_is_explained(void **state)
{
    uint8_t below[K] = {1, 1, 0};
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.parts[0].reach = 1.124;
    s.report.shown = 3;
    s.arms[0].part[0].below = below;
    s.signal[0][0] = 1.11; /* less than noise alone may have */
    s.signal[0][1] = 3;    /* a count that is not told from 0 */
    s.signal[0][2] = 1.13;
    page = render(&s.report, "below.html");
    CHECK(strstr(section(page, "classes"), "Noise alone can reach a signal of 1.12, the tick of the bar"));
    CHECK(strstr(section(page, "classes"), "1.11 below noise") && !strstr(page, "they are equal"));
    CHECK(strstr(section(page, "classes"), "3.00, count below noise") && strstr(section(page, "classes"), "1.1</td>"));
    CHECK(strstr(section(page, "images"), "the first 3 of 10 classes are shown"));
    fkt_free(page);
    s.report.shown = 0;
    page = render(&s.report, "all.html");
    CHECK(!strstr(section(page, "images"), "classes are shown"));
    fkt_free(page);
    unmake(&s);
}

/* Each part has its own noise, its own signal and its own reason to be below the noise. */
static void every_part_is_shown(void **state)
{
    uint8_t below[K] = {0, 1};
    double signal[K];
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.networks[1] = (struct fkt_report_network){"guide", "fedkt-guide/1", "public images", "gain-shape", 96, 97, 128};
    s.parts[0].reach = 1.11;
    s.parts[1] = (struct fkt_report_part){"guide", 1.07};
    s.report.n_networks = s.report.n_parts = 2;
    for (int k = 0; k < K; k++) {
        s.signal[0][k] = 20;
        signal[k] = k == 1 ? 0.25 : 30;
    }
    s.arms[0].part[1] = (struct fkt_report_noise){5.25, 3.125, signal, below};
    s.report.n_arms = 1;
    page = render(&s.report, "parts.html");
    CHECK(strstr(section(page, "privacy"), "<dt>noise on sums, codec</dt><dd>7.6</dd>"));
    CHECK(strstr(section(page, "privacy"), "<dt>noise on moments, codec</dt><dd>4.31</dd>"));
    CHECK(strstr(section(page, "privacy"), "<dt>noise on sums, guide</dt><dd>5.25</dd>"));
    CHECK(strstr(section(page, "privacy"), "<dt>noise on moments, guide</dt><dd>3.125</dd>"));
    CHECK(occurrences(page, "<dt>noise on counts</dt>") == 1);
    CHECK(strstr(section(page, "summary"), "each was encoded as 162 numbers"));
    CHECK(strstr(section(page, "classes"), "a signal of 1.11 (codec) and 1.07 (guide), the tick of the bar"));
    CHECK(strstr(section(page, "classes"), "epsilon 1<br>signal / noise, codec</th>"));
    CHECK(strstr(section(page, "classes"), "epsilon 1<br>signal / noise, guide</th>"));
    CHECK(occurrences(page, "0.25 below noise") == 1 && occurrences(page, "below noise</span>") == 1);
    CHECK(strstr(section(page, "norms"), "Lengths of the images' vectors from the codec before"));
    CHECK(strstr(section(page, "provenance"), "<dt>guide</dt><dd><code>fedkt-guide/1</code></dd>"));
    CHECK(strstr(section(page, "provenance"), "<code>96, 97, 128</code>"));
    fkt_free(page);
    s.report.n_networks = s.report.n_parts = 1;
    page = render(&s.report, "part.html");
    CHECK(strstr(section(page, "privacy"), "<dt>noise on sums</dt><dd>7.6</dd>") && !strstr(page, "guide"));
    fkt_free(page);
    unmake(&s);
}

static void a_release_without_images_claims_none(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.networks[0].kind = s.parts[0].name = "guide";
    for (int a = 0; a < 3; a++) s.arms[a].grid_len = 0;
    page = render(&s.report, "heads.html");
    CHECK(strstr(section(page, "summary"), "were turned into one set of class statistics"));
    CHECK(strstr(section(page, "summary"), "classifiers are computed from the noisy sums alone"));
    CHECK(!strstr(page, "synthetic dataset") && !strstr(page, "the images below"));
    fkt_free(page);
    unmake(&s);
}

/* Exact sums are not called masked ones. */
static void fewer_than_three_sites_mask_nothing(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    page = render(&s.report, "unmasked.html");
    CHECK(strstr(section(page, "summary"), "of exact sums from each site, unmasked"));
    CHECK(strstr(section(page, "cost"), "Each site sent 177 kB of exact sums without masks"));
    CHECK(!strstr(page, "sent by each site, once"));
    fkt_free(page);
    s.report.aggregation = (struct fkt_report_aggregation){.sites = 4, .survivors = 4, .degree = 3, .threshold = 3};
    page = render(&s.report, "masked.html");
    CHECK(strstr(section(page, "summary"), "sent by each site, once"));
    CHECK(strstr(section(page, "cost"), "Each site sent 177 kB once and trained"));
    CHECK(!strstr(page, "exact sums"));
    fkt_free(page);
    unmake(&s);
}

static void missing_numbers_become_dashes(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    s.arms[0].accuracy[0] = NAN;
    s.arms[0].mu = NAN;
    s.signal[0][0] = NAN;
    s.noisy[0][1] = INFINITY;
    page = render(&s.report, "missing.html");
    drop_images(page);
    CHECK(!has_word(page, "nan") && !has_word(page, "inf") && occurrences(page, "<td>\xe2\x80\x93</td>") == 2);
    fkt_free(page);
    unmake(&s);
}

static void a_network_stands_beside_the_heads(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    page = render(&s.report, "heads.html");
    CHECK(!strstr(page, "a network trained on") && occurrences(section(page, "accuracy"), "<td>0.0</td>") == 0);
    fkt_free(page);
    s.report.network = "resnet8";
    s.report.network_recipe = "20 epochs on 500 images per class";
    for (int a = 0; a < 3; a++) s.arms[a].accuracy[FKT_REPORT_NETWORK] = 0.9312 + 0.02 * a;
    page = render(&s.report, "network.html");
    CHECK(strstr(section(page, "accuracy"), "resnet8, a network trained on images drawn from each release "
                                            "(20 epochs on 500 images per class; the last epoch's accuracy)"));
    CHECK(strstr(section(page, "accuracy"), "<th>resnet8</th>") &&
          strstr(section(page, "accuracy"), ">resnet8</text>"));
    CHECK(strstr(section(page, "accuracy"), "<td class=\"best\">93.1</td>"));
    fkt_free(page);
    unmake(&s);
}

static void guided_images_stand_beside_unguided_ones(void **state)
{
    struct sample s;
    char *page;
    const char *guided, *not_guided;
    (void)state;
    make(&s);
    page = render(&s.report, "plain.html");
    CHECK(!strstr(page, "uided"));
    fkt_free(page);
    s.report.guided = "by <magic>";
    s.report.network = "resnet8, guided";
    s.report.unguided_network = "resnet8, unguided";
    s.report.network_recipe = "a recipe";
    for (int a = 0; a < 3; a++) {
        s.arms[a].unguided_png = s.arms[a].grid_png;
        s.arms[a].unguided_len = s.arms[a].grid_len;
        s.arms[a].accuracy[FKT_REPORT_NETWORK] = 0.9312;
        s.arms[a].accuracy[FKT_REPORT_UNGUIDED] = 0.5577;
    }
    page = render(&s.report, "guided.html");
    guided = strstr(section(page, "images"), "<figcaption>Guided: ");
    not_guided = strstr(section(page, "images"), "<figcaption>Not guided: ");
    CHECK(guided && not_guided && guided < not_guided);
    CHECK(strstr(section(page, "images"), "were made by &lt;magic&gt;,"));
    CHECK(strstr(section(page, "accuracy"), "<th>resnet8, guided</th><th>resnet8, unguided</th>"));
    CHECK(strstr(section(page, "accuracy"), "<td class=\"best\">93.1</td><td>55.8</td>"));
    CHECK(strstr(section(page, "accuracy"), "on guided and on unguided ones"));
    fkt_free(page);
    unmake(&s);
}

static void without_test_images_nothing_is_evaluated(void **state)
{
    struct sample s;
    char *page;
    (void)state;
    make(&s);
    for (int a = 0; a < 3; a++)
        for (int h = 0; h < FKT_REPORT_HEADS; h++) s.arms[a].accuracy[h] = NAN;
    page = render(&s.report, "unjudged.html");
    CHECK(strstr(section(page, "accuracy"), "there are no real test images"));
    CHECK(!strstr(page, "accuracy, %") && !strstr(page, "evaluated on real images"));
    fkt_free(page);
    unmake(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_section_stands_in_its_place),
        cmocka_unit_test(strings_of_strangers_are_escaped),
        cmocka_unit_test(the_sum_is_told),
        cmocka_unit_test(a_fixed_seed_is_told_in_red),
        cmocka_unit_test(large_and_empty_runs_fit),
        cmocka_unit_test(below_noise_is_explained),
        cmocka_unit_test(every_part_is_shown),
        cmocka_unit_test(a_release_without_images_claims_none),
        cmocka_unit_test(fewer_than_three_sites_mask_nothing),
        cmocka_unit_test(missing_numbers_become_dashes),
        cmocka_unit_test(a_network_stands_beside_the_heads),
        cmocka_unit_test(guided_images_stand_beside_unguided_ones),
        cmocka_unit_test(without_test_images_nothing_is_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
