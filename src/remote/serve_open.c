/* SPDX-License-Identifier: Apache-2.0 */
/* serve_open.c - task, certificate and token of a server, each with an error message when it cannot be used.
 *
 * Sites identify the server by the pin in the signed task. A task that was made before the server's first start may
 * have none: then it is added here, which changes the task's hash, so the operator's key is needed to sign it again. An
 * existing pin is never changed: sites may have that task already.
 *
 * A start that is refused leaves the task's file as it was: pinned and signed in memory first, it is written when
 * the server listens (fkt_serving_keep_task). A crash in between is harmless: the state holds the server's key by
 * then, and the same start makes the same task again. */
#include "remote/serve_open.h"
#include "remote/remote.h"

#include "fedkt/keys.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/private.h"
#include "base/text.h"
#include "crypto/entropy.h"
#include "net/listen.h"
#include "task/service.h"
#include "task/task.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TASK_MAX = 64 << 20, TOKEN = 32 };

static const char other_key[] = "give its certificate and private key, or the state folder that holds them";

static fkt_status open_task(struct fkt_task *task, const char *path, int accept_weak)
{
    fkt_status st = fkt_task_load_into(task, path);
    if (st != FKT_OK) return st;
    if (!task->federation.sites)
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "task '%s' is not for a federation", task->name),
                             FKT_HINT_TASK_FEDERATION, "make a task with a roster and a server");
    if (!task->service.address[0])
        return fkt_hint_code(fkt_fail(FKT_E_STATE, "task '%s' does not name a server", task->name),
                             FKT_HINT_TASK_SERVER, "make a task that names a server");
    return fkt_remote_check_promise(task, accept_weak);
}

/* A task that holds a pin is not served with a certificate made just now. */
static fkt_status look_for_key(const struct fkt_serving *o, const char *state)
{
    char *path = NULL;
    struct stat sb;
    fkt_status st;
    if (!o->task.service.pin[0]) return FKT_OK;
    FKT_TRY(fkt_path_join(&path, state, "tls.key"));
    if (lstat(path, &sb) != 0)
        st = fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "task '%s' is for a server with another key: there is no '%s'",
                                    o->task.name, path),
                           FKT_HINT_SERVER_KEY, other_key);
out:
    fkt_free(path);
    return st;
}

static fkt_status open_tls(struct fkt_serving *o, const struct fkt_serve_spec *s)
{
    char server[FKT_SERVICE_HOST];
    uint16_t port;
    fkt_status st;
    if (s->certificate) return fkt_tls_read(&o->tls, s->certificate, s->private_key);
    FKT_TRY(look_for_key(o, s->state));
    FKT_TRY(fkt_private_folder(s->state));
    FKT_TRY(fkt_service_address(o->task.service.address, server, &port));
    FKT_TRY(fkt_tls_own(&o->tls, s->state, server));
out:
    return st;
}

/* Only the signer of the task may add a pin, or the operator who signs it now. */
static fkt_status open_key(const struct fkt_serving *o, const struct fkt_serve_spec *s, struct fkt_key *key)
{
    fkt_status st;
    if (!s->key)
        return fkt_hint_code(
            fkt_fail(FKT_E_STATE, "task '%s' does not hold the pin of this server's certificate", o->task.name),
            FKT_HINT_OPERATOR_KEY, "give the operator's key, so that the task can be signed with the pin");
    st = fkt_key_load(key, s->key);
    if (st != FKT_OK || !o->task.signature.there) return st;
    if (memcmp(o->task.signature.key, key->site.key, FKT_SA_KEY) == 0) return FKT_OK;
    return fkt_fail_hint(FKT_E_PEER_AUTH, "give the key that signed it, or sign it with this one first",
                         "task '%s' was signed with another key than '%s'", o->task.name, s->key);
}

/* In memory, and checks that the file could be written. */
static fkt_status put_pin(struct fkt_serving *o, const struct fkt_serve_spec *s, const struct fkt_key *key)
{
    fkt_status st;
    FKT_TRY(fkt_output_file(s->task, 1));
    FKT_TRY(fkt_task_pin(&o->task, o->tls.pin));
    FKT_TRY(fkt_task_sign(&o->task, key->secret));
    FKT_TRY(fkt_json_text(&o->task_text, fkt_task_document(&o->task), 2));
    o->pinned = 1;
out:
    return st;
}

fkt_status fkt_serving_keep_task(const struct fkt_serving *o, const char *path)
{
    return o->pinned ? fkt_file_write(path, o->task_text, strlen(o->task_text), FKT_FILE_REPLACE) : FKT_OK;
}

/* Certificate and pin must match in the end. All checks come before anything is made. */
static fkt_status open_server(struct fkt_serving *o, const struct fkt_serve_spec *s)
{
    const int pinned = o->task.service.pin[0] != '\0';
    struct fkt_key key;
    fkt_status st;
    memset(&key, 0, sizeof key);
    if (pinned || o->task.signature.there) {
        st = fkt_task_verify(&o->task, NULL);
        if (st == FKT_E_STATE) st = fkt_hint_code(st, FKT_HINT_TASK_SIGN, "sign it with the operator's key");
        if (st != FKT_OK) goto out;
    }
    if (!pinned) FKT_TRY(open_key(o, s, &key));
    FKT_TRY(open_tls(o, s));
    if (!pinned) FKT_TRY(put_pin(o, s, &key));
    if (strcmp(o->task.service.pin, o->tls.pin) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "task '%s' is for a server with another key: its pin is %s, this one's %s",
                      o->task.name, o->task.service.pin, o->tls.pin);
    if (st == FKT_E_MISMATCH && s->certificate)
        st = fkt_hint(st, "start it with the certificate that the task was made for, or make a new task");
    else if (st == FKT_E_MISMATCH) st = fkt_hint_code(st, FKT_HINT_SERVER_KEY, other_key);
out:
    fkt_key_clear(&key);
    return st;
}

static fkt_status make_token(const char *path)
{
    uint8_t random[TOKEN];
    char text[2 * TOKEN + 2];
    struct fkt_entropy os;
    fkt_status st;
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, random, sizeof random));
    fkt_hex(text, random, sizeof random);
    text[2 * TOKEN] = '\n';
    FKT_TRY(fkt_file_write(path, text, 2 * TOKEN + 1, FKT_FILE_PRIVATE));
out:
    fkt_wipe(random, sizeof random);
    fkt_wipe(text, sizeof text);
    return st;
}

static fkt_status open_token(struct fkt_serving *o, const char *state)
{
    uint8_t *text = NULL, bytes[TOKEN];
    struct stat sb;
    size_t len = 0;
    fkt_status st;
    FKT_TRY(fkt_path_join(&o->token_path, state, "operator.token"));
    if (lstat(o->token_path, &sb) != 0) FKT_TRY(make_token(o->token_path));
    FKT_TRY(fkt_private_read(&text, &len, o->token_path, 4096, 0, NULL));
    if (len > 0 && text[len - 1] == '\n') text[--len] = '\0';
    if (len != 2 * TOKEN || !fkt_unhex(bytes, (const char *)text, TOKEN)) {
        st = fkt_fail_hint(FKT_E_FORMAT, "remove it: a new one is made at the next start",
                           "'%s' does not hold a token of 64 hexadecimal digits", o->token_path);
        goto out;
    }
    o->token = (char *)text;
    text = NULL;
out:
    fkt_wipe(bytes, sizeof bytes);
    if (text) fkt_wipe(text, len);
    fkt_free(text);
    return st;
}

/* A port that cannot be used is an error before anything is made. */
static fkt_status try_listening(const char *where)
{
    struct fkt_listen l;
    fkt_status st = fkt_listen_open(&l, where);
    if (st == FKT_OK) close(l.fd);
    return st;
}

fkt_status fkt_serving_open(struct fkt_serving *out, const struct fkt_serve_spec *s)
{
    uint8_t *text = NULL;
    struct stat sb;
    size_t len;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!s->task || !s->state || !s->listen)
        return fkt_fail(FKT_E_ARG, "a server needs a task, a folder for its state and an address to listen on");
    if (!s->certificate != !s->private_key)
        return fkt_fail_hint(FKT_E_ARG, "give both for your own certificate, or neither to have one made",
                             "a certificate and its private key must be given together");
    FKT_TRY(try_listening(s->listen));
    FKT_TRY(open_task(&out->task, s->task, s->accept_weak));
    if (stat(s->state, &sb) == 0 && !S_ISDIR(sb.st_mode)) {
        st = fkt_hint_code(fkt_fail(FKT_E_EXISTS, "'%s' exists and is not a folder", s->state), FKT_HINT_STATE_FOLDER,
                           "name a folder for the state");
        goto out;
    }
    FKT_TRY(open_server(out, s));
    FKT_TRY(fkt_private_folder(s->state));
    FKT_TRY(open_token(out, s->state));
    if (out->pinned) goto out;
    FKT_TRY(fkt_file_read(&text, &len, s->task, TASK_MAX));
    out->task_text = (char *)text;
out:
    return st;
}

void fkt_serving_clear(struct fkt_serving *o)
{
    fkt_task_clear(&o->task);
    fkt_tls_clear(&o->tls);
    if (o->token) fkt_wipe(o->token, strlen(o->token));
    fkt_free(o->token);
    fkt_free(o->token_path);
    fkt_free(o->task_text);
}
