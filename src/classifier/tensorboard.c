/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.c - the curves of a training as an event file that TensorBoard draws.
 *
 *   file    = record*, the first of which says file_version "brain.Event:2"
 *   record  = length u64 | masked CRC-32C of those 8 bytes u32 | Event (proto/events.proto) | masked CRC of it u32
 *   masked  = (crc rotated right by 15) + 0xa282ead8, so that the checksum of data with checksums is not a fixed point
 *
 * All little-endian; the framing is TFRecord's. One record per epoch, with a value for each curve that has one: NaN is
 * left out. The name is events.out.tfevents.<start in seconds>.fedkt: TensorFlow appends the host's name, but this file
 * is published with a release, so it contains no host, user or process. A file with the same start belongs to the same
 * training and is replaced by the longer one; the whole file is written again, atomically.
 * Cost: some 300 bytes an epoch. */
#include "classifier/tensorboard.h"

#include "fedkt/learn.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#include <events.pb-c.h>

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { HEAD = 12, TAIL = 4 }; /* bytes around an event */
#define SECONDS_MAX 9007199254740992.0

static const struct curve {
    const char *tag;
    size_t at;
} curves[] = {
    {"train/loss", offsetof(struct fkt_epoch, loss)},
    {"train/accuracy", offsetof(struct fkt_epoch, accuracy)},
    {"held/loss", offsetof(struct fkt_epoch, held_loss)},
    {"held/accuracy", offsetof(struct fkt_epoch, held_accuracy)},
    {"ema_held/loss", offsetof(struct fkt_epoch, ema_held_loss)},
    {"ema_held/accuracy", offsetof(struct fkt_epoch, ema_held_accuracy)},
    {"train/rate", offsetof(struct fkt_epoch, rate)},
    {"train/images_per_second", offsetof(struct fkt_epoch, images_per_second)},
};
#define CURVES (sizeof curves / sizeof *curves)

/* Bit by bit: a few thousand bytes per training do not need a table. */
uint32_t fkt_crc32c(const uint8_t *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82F63B78U & (0U - (crc & 1U)));
    }
    return ~crc;
}

static void put(uint8_t *out, uint64_t x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(x >> (8 * i));
}

static uint32_t masked(const uint8_t *bytes, size_t n)
{
    const uint32_t crc = fkt_crc32c(bytes, n);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

static void add_record(struct fkt_text *file, const Events__Event *event)
{
    const size_t n = events__event__get_packed_size(event);
    uint8_t *record = NULL;
    if (fkt_text_status(file) != FKT_OK) return;
    file->st = fkt_alloc(&record, HEAD + n + TAIL);
    if (file->st != FKT_OK) return;
    put(record, n, 8);
    put(record + 8, masked(record, 8), 4);
    events__event__pack(event, record + HEAD);
    put(record + HEAD + n, masked(record + HEAD, n), TAIL);
    fkt_text_addn(file, (const char *)record, HEAD + n + TAIL);
    fkt_free(record);
}

static void add_epoch(struct fkt_text *file, const struct fkt_epoch *e, double wall)
{
    Events__Summary__Value value[CURVES], *list[CURVES];
    Events__Summary summary = EVENTS__SUMMARY__INIT;
    Events__Event event = EVENTS__EVENT__INIT;
    for (size_t c = 0; c < CURVES; c++) {
        Events__Summary__Value *v = &value[summary.n_value];
        double x;
        memcpy(&x, (const char *)e + curves[c].at, sizeof x);
        if (isnan(x)) continue;
        events__summary__value__init(v);
        v->tag = (char *)curves[c].tag; /* packing only reads it */
        v->has_simple_value = 1;
        v->simple_value = (float)x;
        list[summary.n_value++] = v;
    }
    summary.value = list;
    event.has_wall_time = event.has_step = 1;
    event.wall_time = wall;
    event.step = e->epoch;
    event.summary = &summary;
    add_record(file, &event);
}

fkt_status fkt_curves_tensorboard(const char *folder, const struct fkt_epoch *e, size_t n, double wall)
{
    Events__Event first = EVENTS__EVENT__INIT;
    struct fkt_text file;
    char name[64], *path = NULL;
    double now = wall;
    fkt_status st;
    fkt_text_init(&file);
    if (!(wall >= 0 && wall < SECONDS_MAX)) {
        st = fkt_fail(FKT_E_ARG, "the start of a training is given in seconds since 1970, not as %g", wall);
        goto out;
    }
    first.has_wall_time = 1;
    first.wall_time = wall;
    first.file_version = (char *)"brain.Event:2"; /* packing only reads it */
    add_record(&file, &first);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && e[i].seconds > 0) now += e[i].seconds;
        add_epoch(&file, &e[i], now);
    }
    FKT_TRY(fkt_text_status(&file));
    snprintf(name, sizeof name, "events.out.tfevents.%llu.fedkt", (unsigned long long)wall);
    FKT_TRY(fkt_path_join(&path, folder, name));
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_file_write(path, file.s, file.len, FKT_FILE_REPLACE));
out:
    fkt_free(path);
    fkt_text_clear(&file);
    return st;
}
