/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.c - recognises weights in PyTorch's own format, which is not safetensors.
 *
 *   zip:     "PK\3\4" ... the name of the first member ends in "data.pkl"            torch.save since 1.6
 *   pickle:  0x80, protocol 2 to 5, and then no length of a safetensors header       torch.save before, and others
 *
 * They are recognised and never read: unpickling executes code from the file. A user who has PyTorch converts them with
 * one line, which loads tensors alone (weights_only). It takes the tensors out of a checkpoint that keeps them under
 * "state_dict", and copies each of them, since safetensors has no views of shared memory. */
#include "tensor/pytorch.h"

#include <stdio.h>
#include <string.h>

enum { ZIP_HEADER = 30 }; /* bytes before the name of a member */

int fkt_pytorch_bytes(const uint8_t *bytes, size_t len)
{
    static const char member[] = "data.pkl";
    size_t n;
    if (len > ZIP_HEADER && !memcmp(bytes, "PK\3\4", 4)) {
        n = (size_t)(bytes[26] | bytes[27] << 8);
        return n >= strlen(member) && n <= len - ZIP_HEADER &&
               !memcmp(bytes + ZIP_HEADER + n - strlen(member), member, strlen(member));
    }
    return len > 9 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 &&
           !(bytes[8] == '{' && !(bytes[4] | bytes[5] | bytes[6] | bytes[7]));
}

int fkt_pytorch_name(const char *name)
{
    static const char *const ends[] = {".pth", ".pt", ".ckpt", ".bin"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i])) return 1;
    return 0;
}

void fkt_pytorch_hint(char out[FKT_PYTORCH_HINT], const char *file)
{
    const char *shown = strlen(file) <= 100 && !strpbrk(file, " '\"\\$`&;|<>()!\n") ? file : "FILE";
    snprintf(out, FKT_PYTORCH_HINT,
             "convert it: python3 -c \"import sys,torch,safetensors.torch as s;[s.save_file({k:v.contiguous().clone() "
             "for k,v in (lambda t:t.get('state_dict',t))(torch.load(f,map_location='cpu',weights_only=True)).items()},"
             "f.rsplit('.',1)[0]+'.safetensors') for f in sys.argv[1:]]\" %s",
             shown);
}

fkt_status fkt_pytorch_refuse(const char *path)
{
    char hint[FKT_PYTORCH_HINT];
    fkt_pytorch_hint(hint, path);
    return fkt_fail_hint(FKT_E_FORMAT, hint,
                         "'%s' is a pickled PyTorch file, not safetensors, and is not read: unpickling executes code "
                         "from the file",
                         path);
}
