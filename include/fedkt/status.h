/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - how every fedkt call answers, and the sentence behind a failure.
 *
 * A call returns FKT_OK or a status from one of five families that a caller treats differently:
 *   1x  the caller asked for something impossible
 *   2x  the machine let us down
 *   3x  data (a file, an image, a tensor) is not what it claims to be
 *   4x  a peer in a protocol sent what it must not, or too few of them are left
 *   6x  the privacy budget does not allow it
 * Values are pinned; new ones fill the gaps. The sentence and the hint belong to the calling thread and stay valid
 * until its next failing fedkt call.
 */
#ifndef FEDKT_STATUS_H
#define FEDKT_STATUS_H

#if defined(__GNUC__)
#define FKT_API __attribute__((visibility("default")))
#define FKT_MUST_USE __attribute__((warn_unused_result))
#else
#define FKT_API
#define FKT_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    FKT_OK = 0,
    FKT_E_ARG = 10,         /* an argument is out of its documented range */
    FKT_E_STATE = 11,       /* the call does not fit what came before it */
    FKT_E_NOMEM = 20,       /* memory ran out */
    FKT_E_IO = 21,          /* a file could not be read or written */
    FKT_E_EXISTS = 22,      /* the output is there already */
    FKT_E_ENTROPY = 23,     /* the operating system gave no randomness */
    FKT_E_STOPPED = 24,     /* the caller asked to stop: a progress hook, an event hook or a stop flag */
    FKT_E_FORMAT = 30,      /* a file breaks its format */
    FKT_E_NUMERIC = 31,     /* a NaN, an infinity or a number beyond its bound */
    FKT_E_MISMATCH = 32,    /* two things that must belong together do not */
    FKT_E_PEER_FORMAT = 40, /* a peer's message breaks the protocol's format */
    FKT_E_PEER_AUTH = 41,   /* a peer's signature, key, commitment or view of the round is wrong */
    FKT_E_TOO_FEW = 42,     /* fewer peers are left than the protocol may go on with */
    FKT_E_BUDGET = 60       /* the privacy ledger refuses the debit */
} fkt_status;

/* What to do next, for a program that phrases it in its own terms (the command line names its option): the remedy
 * behind the hint of the last failure. Pinned like the statuses. A comment names the values that come with a code. */
enum fkt_hint {
    FKT_HINT_NONE = 0, /* the hint's words say all that there is */

    FKT_HINT_EXISTS = 1,         /* allow the file to be replaced */
    FKT_HINT_EXISTS_FOLDER = 2,  /* allow the folder to be replaced, or name another */
    FKT_HINT_FOREIGN_FOLDER = 3, /* name a new folder: only folders of ours are replaced */

    FKT_HINT_SKIP_BAD = 10,      /* leave out images that cannot be read */
    FKT_HINT_SMALLER_SIZE = 11,  /* take smaller images */
    FKT_HINT_FEWER_THREADS = 12, /* use fewer threads, or smaller images */
    FKT_HINT_DEVICE_CPU = 13,    /* run networks on the processor */
    FKT_HINT_DEVICE_BUILD = 14,  /* use a build with CUDA, or the processor */

    FKT_HINT_CACHE = 20,            /* set FEDKT_CACHE, or say where the weights are */
    FKT_HINT_WEIGHTS_PATH = 21,     /* say where the weights are */
    FKT_HINT_WEIGHTS_KIND = 22,     /* weights are a safetensors file or a folder of published files */
    FKT_HINT_WEIGHTS_VERIFY = 23,   /* codec: fetch the weights again, or verify them */
    FKT_HINT_PULL = 24,             /* codec: fetch its weights */
    FKT_HINT_PULL_AGAIN = 25,       /* codec: fetch its weights again */
    FKT_HINT_OTHER_CODEC = 26,      /* these weights may be of another codec */
    FKT_HINT_CALIBRATE = 27,        /* codec, side in pixels: make a calibration */
    FKT_HINT_CALIBRATE_AGAIN = 28,  /* make the calibration again */
    FKT_HINT_CALIBRATION_FILE = 29, /* give a calibration file */
    FKT_HINT_HUB_AUTHORITY = 30,    /* give the certificate authority of the hub */

    FKT_HINT_TASK_FILE = 40,            /* give the task file, unchanged */
    FKT_HINT_TASK_CALIBRATION = 41,     /* ask the task's author for the calibration */
    FKT_HINT_CALIBRATION_ALONE = 42,    /* the task's calibration would be enough */
    FKT_HINT_CALIBRATION_BUILT_IN = 43, /* give no calibration: the codec's own is the task's */
    FKT_HINT_TASK_RECORDS = 44,         /* make the task with a larger bound on records */
    FKT_HINT_TASK_CENTRAL = 45,         /* use a task without a federation, or with central noise */
    FKT_HINT_TASK_ROSTER = 46,          /* make a task with a roster */
    FKT_HINT_TASK_SERVER = 47,          /* make a task that names a server */
    FKT_HINT_TASK_FEDERATION = 48,      /* make a task with a roster and a server */
    FKT_HINT_TASK_SIGN = 49,            /* the operator signs the task */
    FKT_HINT_GUIDE_CALIBRATION = 51,    /* give the calibration of the task's guide */
    FKT_HINT_GUIDE_WEIGHTS = 52,        /* say where the weights of the task's guide are */
    FKT_HINT_GUIDE_WEIGHTS_KIND = 53,   /* they are a safetensors file or a folder of published files */
    FKT_HINT_GUIDE_PULL = 54,           /* guide: fetch its weights */
    FKT_HINT_TASK_EARLY = 50,           /* the operator's server pins and signs the task first */

    FKT_HINT_LATENTS_FILE = 60, /* give a latents file, or make it again */
    FKT_HINT_MOMENTS_FILE = 61, /* give a moments file, or make it again */
    FKT_HINT_RELEASE_FILE = 62, /* give a release file */
    FKT_HINT_BUDGET = 63,       /* epsilon, delta: the least budget that would do */
    FKT_HINT_GUIDED_STEPS = 64, /* guide images by gradient */
    FKT_HINT_GUIDED_PLAIN = 65, /* decode images without a guide */
    FKT_HINT_HEADS = 66,        /* a release without images: use its heads */
    FKT_HINT_PARTIAL = 67,      /* repeat the run that began it with its options, or allow it to be replaced */

    FKT_HINT_SERVER_CHOICES = 70,    /* start the server with the choices of its first start */
    FKT_HINT_SERVER_FOLDER = 71,     /* name another public folder, or the state that it belongs to */
    FKT_HINT_RECEIPT_FILE = 72,      /* where the receipt is; a log can be verified without one */
    FKT_HINT_OTHER_RECEIPT = 73,     /* the receipt is of another task */
    FKT_HINT_OTHER_TASK = 74,        /* the log is of another task */
    FKT_HINT_SERVER_NEW_FOLDER = 75, /* name a new public folder */

    FKT_HINT_KEY_FILE = 80,      /* give a key file */
    FKT_HINT_SITE_KEY_FILE = 81, /* give the public part of a site's key */
    FKT_HINT_ROSTER_FILE = 82,   /* give a roster; a site's public key is enrolled in one */
    FKT_HINT_ENROLL_MORE = 83,   /* enrol further sites */

    FKT_HINT_ACCEPT_WEAK = 90,  /* accept a weak promise */
    FKT_HINT_ACCEPT_SEED = 91,  /* accept that everything random comes from a known seed */
    FKT_HINT_LIMIT = 92,        /* take fewer records with a limit */
    FKT_HINT_OPERATOR_KEY = 93, /* give the operator's key */
    FKT_HINT_SERVER_KEY = 94,   /* give the server's certificate and private key, or the state that holds them */
    FKT_HINT_STATE_FOLDER = 95, /* name a folder for the state */
    FKT_HINT_SAME_STATE = 96,   /* start it again with the same state */
    FKT_HINT_NAME_FILE = 97     /* say where the file is: there is no default place for it */
};

FKT_API const char *fkt_status_name(fkt_status st);
FKT_API const char *fkt_error_text(void); /* never NULL; "" before any failure */
FKT_API const char *fkt_error_hint(void); /* plain words; never NULL; "" when there is none */
FKT_API enum fkt_hint fkt_error_hint_code(void);
FKT_API const char *fkt_error_hint_value(unsigned i); /* i of 0 and 1; never NULL; "" when there is none */
FKT_API const char *fkt_version(void);
FKT_API void fkt_string_free(char *s); /* a string that a call gives; NULL is fine */

#define FKT_SHA256_HEX 65 /* a SHA-256 as lower-case hex, with its NUL */

/* Called now and then during long work: `what` is borrowed, `done` of `total` (total 0: unknown). A non-zero answer
 * stops the work with FKT_E_STOPPED. May be called from worker threads, one at a time. */
struct fkt_progress {
    int (*step)(void *self, const char *what, unsigned long long done, unsigned long long total);
    void *self;
};

#ifdef __cplusplus
}
#endif
#endif
