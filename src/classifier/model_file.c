/* SPDX-License-Identifier: Apache-2.0 */
/* model_file.c - models on disk: safetensors with torchvision's names, format "fedkt.model/1".
 *
 *   metadata   see description.c
 *   tensors    F32 as state_dict() has them and in its order: conv1.weight, bn1.weight, bn1.bias, bn1.running_mean,
 *              bn1.running_var, bn1.num_batches_tracked, layer1.0.conv1.weight, ..., fc.weight, fc.bias
 *
 * num_batches_tracked is an I64 scalar that PyTorch requires (strict=True) and uses only for norms without momentum: we
 * write 0 and ignore it when reading.
 *
 * A file is untrusted: shapes decide which network it is, within bounds, before anything is allocated for it; then
 * every tensor must be present with its shape, no other may be, and every number must be one that a network can run
 * with. F16, BF16 and F64 are read too. Other common kinds of files are recognised by their first bytes: ONNX is read
 * elsewhere (onnx.h), a pickled checkpoint is never read (tensor/pytorch.c). */
#include "classifier/model.h"
#include "classifier/onnx.h"

#include "base/alloc.h"
#include "base/file.h"
#include "nn/weights.h"
#include "tensor/safetensors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNTER "num_batches_tracked"

/* ---- saving ---- */

static fkt_status put_meta(void *ctx, const char *key, const char *value)
{
    return fkt_st_writer_meta(ctx, key, value);
}

/* "bn1.running_var" is followed by "bn1.num_batches_tracked"; other names by nothing. */
static fkt_status add_counter(struct fkt_st_writer *w, const char *name)
{
    static const int64_t zero = 0;
    static const char before[] = "running_var";
    char counter[FKT_MODEL_NAME_MAX + sizeof COUNTER];
    size_t n = strlen(name), k = sizeof before - 1;
    if (n < k || strcmp(name + n - k, before) != 0) return FKT_OK;
    snprintf(counter, sizeof counter, "%.*s" COUNTER, (int)(n - k), name);
    return fkt_st_writer_add(w, counter, FKT_I64, 0, NULL, &zero);
}

fkt_status fkt_model_save(const struct fkt_model *m, const char *path, int force)
{
    struct fkt_st_writer *w = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_check(m, path));
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_model_describe(m, put_meta, w));
    for (size_t i = 0; i < m->net.n_slots; i++) {
        const struct fkt_slot *s = &m->net.slot[i];
        uint64_t shape[FKT_SLOT_RANK];
        for (uint32_t d = 0; d < s->rank; d++) shape[d] = s->shape[d];
        FKT_TRY(fkt_st_writer_add(w, s->name[0], FKT_F32, s->rank, shape, m->array[i]));
        FKT_TRY(add_counter(w, s->name[0]));
    }
    FKT_TRY(fkt_st_writer_write(w, path, fkt_model_file_flags(m, force)));
out:
    fkt_st_writer_free(w);
    return st;
}

/* ---- loading ---- */

static const char *get_meta(void *ctx, const char *key) { return fkt_safetensors_meta(ctx, key); }

static int is_counter(const char *name)
{
    size_t n = strlen(name), k = sizeof "." COUNTER - 1;
    return n >= k && !strcmp(name + n - k, "." COUNTER);
}

fkt_status fkt_model_check(const struct fkt_model *m, const char *path)
{
    for (size_t i = 0; i < m->net.n_slots; i++) {
        const char *name = m->net.slot[i].name[0];
        const int variance = strstr(name, "running_var") != NULL;
        for (size_t k = 0, n = fkt_slot_count(&m->net.slot[i]); k < n; k++)
            if (!isfinite(m->array[i][k]) || (variance && m->array[i][k] < 0))
                return fkt_fail(FKT_E_NUMERIC, "tensor '%s' of '%s' is %s at element %zu", name, path,
                                isfinite(m->array[i][k]) ? "a negative variance" : "not finite", k);
    }
    return FKT_OK;
}

/* Reads shapes alone. */
static fkt_status recognise(struct fkt_resnet_kind *out, const struct fkt_safetensors *file, const char *path)
{
    static const char hint[] = "a model is a torchvision state_dict of resnet18 (or ours of resnet8), names without "
                               "prefix; remove 'module.' or '_orig_mod.' before them";
    const struct fkt_tensor *conv = fkt_safetensors_find(file, "conv1.weight");
    const struct fkt_tensor *fc = fkt_safetensors_find(file, "fc.weight");
    if (!conv || !fc)
        return fkt_fail_hint(FKT_E_MISMATCH, hint, "'%s' does not hold a model: tensor '%s' is missing", path,
                             conv ? "fc.weight" : "conv1.weight");
    if (conv->rank == 4 && fc->rank == 2 && fkt_resnet_recognise(out, conv->shape, fc->shape)) return FKT_OK;
    if (fc->rank != 2 || !fc->shape[0] || fc->shape[0] > FKT_MODEL_CLASSES_MAX)
        return fkt_fail(FKT_E_MISMATCH, "'%s' does not hold a model: 'fc.weight' must be a matrix of 1 to %d rows",
                        path, FKT_MODEL_CLASSES_MAX);
    return fkt_fail_hint(FKT_E_MISMATCH, hint,
                         "'%s' holds a model of another shape: 'conv1.weight' is neither (64,3,3,3) nor (64,3,7,7) nor "
                         "(16,3,3,3)",
                         path);
}

fkt_status fkt_model_read(struct fkt_model **out, const struct fkt_safetensors *file, const char *path, uint32_t size)
{
    struct fkt_resnet_kind kind = {0};
    struct fkt_model *m = NULL;
    struct fkt_weights *w = NULL;
    struct fkt_net net;
    fkt_status st;
    *out = NULL;
    fkt_net_init(&net, 3);
    FKT_TRY(recognise(&kind, file, path));
    fkt_resnet_build(&net, kind.architecture, kind.stem, kind.classes);
    st = fkt_weights_bind(&w, &net, &file, 1, is_counter, NULL);
    if (st != FKT_OK) {
        fkt_fail_in(st, "'%s'", path);
        goto out;
    }
    FKT_TRY(fkt_model_from_words(&m, &kind, get_meta, (void *)(uintptr_t)file, size, path));
    for (uint32_t i = 0; i < m->net.n_slots; i++) {
        st = fkt_weights_read(w, i, m->array[i]);
        if (st == FKT_OK) continue;
        fkt_fail_in(st, "'%s'", path);
        goto out;
    }
    FKT_TRY(fkt_model_check(m, path));
    *out = m;
    m = NULL;
out:
    fkt_model_free(m);
    fkt_weights_free(w);
    fkt_net_clear(&net);
    return st;
}

/* A safetensors file begins with the length of its header, below 2^32, and then '{'; protobuf writes ONNX's first field
 * (ir_version, a small number) as 08 and that number. */
static fkt_status detect_onnx(int *onnx, const char *path)
{
    uint8_t b[9] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not block */
    struct stat sb;
    ssize_t n = 0;
    *onnx = 0;
    if (fd < 0) return fkt_io_fail("read", path);
    if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode)) n = read(fd, b, sizeof b); /* the reader reports anything else */
    close(fd);
    if (n == sizeof b && b[8] == '{' && !(b[4] | b[5] | b[6] | b[7])) return FKT_OK;
    *onnx = n >= 2 && b[0] == 0x08 && b[1] < 0x80;
    return FKT_OK;
}

fkt_status fkt_model_load(struct fkt_model **out, const char *path, uint32_t size)
{
    struct fkt_safetensors *file = NULL;
    int onnx;
    fkt_status st;
    *out = NULL;
    if (size && (size < FKT_MODEL_SIZE_MIN || size > FKT_MODEL_SIZE_MAX))
        return fkt_fail(FKT_E_ARG, "a model cannot take images of %" PRIu32 " px: %d to %d", size, FKT_MODEL_SIZE_MIN,
                        FKT_MODEL_SIZE_MAX);
    FKT_TRY(detect_onnx(&onnx, path));
    if (onnx) return fkt_onnx_load(out, path, size);
    FKT_TRY(fkt_safetensors_open(&file, path));
    FKT_TRY(fkt_model_read(out, file, path, size));
out:
    fkt_safetensors_free(file);
    return st;
}
