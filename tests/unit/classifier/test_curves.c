/* SPDX-License-Identifier: Apache-2.0 */
/* Curves as CSV and as TensorBoard events: the texts and bytes themselves, read by a small reader here and by another
 * implementation in oracle/onnx_check.py. */
#include "base/file.h"
#include "classifier/tensorboard.h"
#include "fedkt/learn.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <unistd.h>

static const struct fkt_epoch run[] = {
    {1, 2.25, 0.125, 2.0, 0.25, NAN, NAN, 0.1, 12.5, 4000},
    {2, 1.5, 0.5, 1.75, 0.375, 1.7, 0.4375, 0.05, 10, 5000},
    {3, 1e-9, 1, NAN, NAN, NAN, NAN, 0, 0.25, 123456.789},
};

static void csv_says_what_is_known(void **state)
{
    const char *want = "epoch,loss,accuracy,held_loss,held_accuracy,ema_held_loss,ema_held_accuracy,rate,seconds,"
                       "images_per_second\n"
                       "1,2.25,0.125,2,0.25,,,0.1,12.5,4000\n"
                       "2,1.5,0.5,1.75,0.375,1.7,0.4375,0.05,10,5000\n"
                       "3,1e-09,1,,,,,0,0.25,123456.789\n";
    struct scratch s;
    const char *path;
    uint8_t *got = NULL;
    size_t len;
    (void)state;
    scratch_init(&s);
    path = scratch_path(&s, "curves.csv");
    CHECK_OK(fkt_curves_csv(path, run, 3, 0));
    CHECK_OK(fkt_file_read(&got, &len, path, 4096));
    assert_string_equal((const char *)got, want);
    fkt_free(got);
    CHECK_STATUS(fkt_curves_csv(path, run, 0, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_curves_csv(path, run, 0, 1));
    CHECK_OK(fkt_file_read(&got, &len, path, 4096));
    CHECK(len == (size_t)(strchr(want, '\n') + 1 - want));
    fkt_free(got);
    scratch_release(&s);
}

static void crc32c_is_the_published_one(void **state)
{
    uint8_t zero[32] = {0};
    (void)state;
    CHECK(fkt_crc32c((const uint8_t *)"123456789", 9) == 0xE3069283U);
    CHECK(fkt_crc32c(zero, 32) == 0x8A9136AAU); /* RFC 3720, B.4 */
    CHECK(fkt_crc32c(zero, 0) == 0);
}

static uint64_t take(const uint8_t *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;) x = x << 8 | p[i];
    return x;
}

static uint32_t masked(const uint8_t *p, size_t n)
{
    uint32_t crc = fkt_crc32c(p, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

/* Is `tag` with `value` in these bytes, as fields 1 and 2 of a value? */
static int holds(const uint8_t *p, size_t n, const char *tag, float value)
{
    const size_t t = strlen(tag), all = t + 7;
    uint8_t want[64] = {0x0A, (uint8_t)t};
    memcpy(want + 2, tag, t);
    want[t + 2] = 0x15;
    memcpy(want + t + 3, &value, 4);
    for (size_t i = 0; i + all <= n; i++)
        if (!memcmp(p + i, want, all)) return 1;
    return 0;
}

static void events_are_framed_and_hold_the_curves(void **state)
{
    struct scratch s;
    const char *folder, *path;
    uint8_t *got = NULL;
    const uint8_t *event[4] = {0};
    size_t len, n[4] = {0}, k = 0;
    double wall;
    (void)state;
    scratch_init(&s);
    folder = scratch_path(&s, "a/b");
    path = scratch_path(&s, "a/b/events.out.tfevents.1700000000.fedkt");
    CHECK_OK(fkt_curves_tensorboard(folder, run, 1, 1700000000.75)); /* a shorter one is replaced */
    CHECK_OK(fkt_curves_tensorboard(folder, run, 3, 1700000000.75));
    CHECK_OK(fkt_file_read(&got, &len, path, 4096));
    for (size_t at = 0; at < len; k++) {
        CHECK(k < 4 && at + 16 <= len);
        n[k] = (size_t)take(got + at, 8);
        event[k] = got + at + 12;
        CHECK(take(got + at + 8, 4) == masked(got + at, 8));
        CHECK(at + 16 + n[k] <= len);
        CHECK(take(event[k] + n[k], 4) == masked(event[k], n[k]));
        at += 16 + n[k];
    }
    CHECK(k == 4);
    CHECK(n[0] == 24 && !memcmp(event[0] + 9,
                                "\x1a\x0d"
                                "brain.Event:2",
                                15));
    for (size_t i = 1; i < 4; i++) { /* wall_time is field 1, step field 2 */
        CHECK(event[i][0] == 0x09 && event[i][9] == 0x10 && event[i][10] == i);
        memcpy(&wall, event[i] + 1, 8);
        CHECK_NEAR(wall, 1700000000.75 + (i > 1 ? 10 : 0) + (i > 2 ? 0.25 : 0), 1e-6);
    }
    CHECK(holds(event[1], n[1], "train/loss", 2.25F) && holds(event[1], n[1], "held/accuracy", 0.25F));
    CHECK(holds(event[2], n[2], "ema_held/accuracy", 0.4375F) && holds(event[2], n[2], "train/rate", 0.05F));
    CHECK(holds(event[2], n[2], "ema_held/loss", 1.7F) && holds(event[2], n[2], "held/loss", 1.75F));
    CHECK(holds(event[2], n[2], "train/images_per_second", 5000));
    CHECK(holds(event[3], n[3], "train/accuracy", 1.0F));
    for (size_t i = 0; i + 8 <= n[3]; i++) CHECK(memcmp(event[3] + i, "held/los", 8) != 0); /* NaN is left out */
    fkt_free(got);
    scratch_release(&s);
}

static void no_host_and_no_nonsense(void **state)
{
    struct scratch s;
    const char *folder;
    char host[256] = "";
    uint8_t *got = NULL;
    size_t len, h;
    (void)state;
    CHECK(gethostname(host, sizeof host - 1) == 0);
    h = strlen(host);
    scratch_init(&s);
    folder = scratch_path(&s, "runs");
    CHECK_STATUS(fkt_curves_tensorboard(folder, run, 3, NAN), FKT_E_ARG);
    CHECK_STATUS(fkt_curves_tensorboard(folder, run, 3, -1), FKT_E_ARG);
    CHECK_STATUS(fkt_curves_tensorboard(folder, run, 3, INFINITY), FKT_E_ARG);
    CHECK(access(folder, F_OK) != 0);
    CHECK_OK(fkt_curves_tensorboard(folder, run, 3, 5));
    CHECK_OK(fkt_file_read(&got, &len, scratch_path(&s, "runs/events.out.tfevents.5.fedkt"), 4096));
    for (size_t i = 0; h > 2 && i + h <= len; i++) CHECK(memcmp(got + i, host, h) != 0);
    fkt_free(got);
    CHECK_STATUS(fkt_curves_tensorboard(scratch_path(&s, "runs/events.out.tfevents.5.fedkt/x"), run, 3, 5), FKT_E_IO);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_says_what_is_known),
        cmocka_unit_test(crc32c_is_the_published_one),
        cmocka_unit_test(events_are_framed_and_hold_the_curves),
        cmocka_unit_test(no_host_and_no_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
