# SPDX-License-Identifier: Apache-2.0
"""The steps `pack` and `unpack` of bench/guide.py: what a card needs, in pieces that a transfer takes.

A piece is a tar of at most --piece MB. Its members are xz files; one that crosses the end of a piece is continued in
the next as NAME.xz.0-of-2, NAME.xz.1-of-2. The order is that of the cells (guide_cells.py), so that the first pieces
are enough to begin with; a file that is larger than a piece comes last.
"""

import hashlib
import io
import lzma
import os
import re
import shutil
import sys
import tarfile

import guide_cells
import guide_sets

BLOCK, RECORD = 512, 20 * 512  # of a tar: headers and members fill blocks, two zero blocks end it, records make it up


def bare(member):
    """Without the file's date and owner: the same bytes everywhere, and fewer of them."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def pack_images(root, target, limit=None):
    """root/CLASS/* as a tar; the same images for every caller: in the order of a hash of their names."""
    if os.path.exists(target):
        return
    with tarfile.open(target + ".part", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(os.listdir(root)):
            files = sorted(os.listdir(os.path.join(root, name)))
            files = sorted(files, key=lambda f: hashlib.sha256(f.encode()).digest())[:limit] if limit else files
            for file in sorted(files):
                tar.add(os.path.realpath(os.path.join(root, name, file)), os.path.join(name, file), filter=bare)
    os.replace(target + ".part", target)


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)


def pack(a):
    os.makedirs(os.path.join(a.to, "sets"), exist_ok=True)
    for path, _, files in os.walk(os.path.join(a.out, "runs")):
        if "release.safetensors" in files:
            source = os.path.join(path, "release.safetensors")
            copy(source, os.path.join(a.to, os.path.relpath(source, a.out)))
    for name in a.sets:
        data, split = guide_sets.set_folder(a, name)
        few = 20 if a.quick else None
        pack_images(os.path.join(data, split), os.path.join(a.to, "sets", f"{name}-test.tar"), few)
        if a.real != 0:
            pack_images(os.path.join(data, "train"), os.path.join(a.to, "sets", f"{name}-real.tar"), a.real or few)
    if a.public:
        classes = max(1, len(os.listdir(a.public)))
        most = 200 if a.quick else a.public_limit
        pack_images(a.public, os.path.join(a.to, "sets", "public.tar"), most and max(1, most // classes))
    if a.codecs:
        for half in ("encoder", "decoder"):
            file = f"taesd_{half}.safetensors"
            copy(os.path.join(a.codecs, file), os.path.join(a.to, "codecs", file))
    if a.piece:
        write_pieces(a.to, int(a.piece * 1e6))


# ---- pieces ----


def in_order(folder):
    """Files of the folder, each once, in the order in which cells need them."""
    needed = [file for cell in guide_cells.students() for file in guide_cells.inputs(cell)]
    return [file for file in dict.fromkeys(needed) if os.path.exists(os.path.join(folder, file))]


def cuts(sizes, limit):
    """For every size its parts as (piece, first byte, end), such that no piece is larger than the limit."""
    most = limit // RECORD * RECORD - 2 * BLOCK
    if most < 2 * BLOCK:
        sys.exit(f"guide.py: a piece of {limit} bytes is too small")
    piece, room, found = 0, most, []
    for size in sizes:
        at, parts = 0, []
        while at < size or not parts:
            if room < 2 * BLOCK:
                piece, room = piece + 1, most
            end = min(size, at + room - BLOCK)
            parts.append((piece, at, end))
            room -= BLOCK + -(-(end - at) // BLOCK) * BLOCK
            at = end
        found.append(parts)
    return found


def compressed(folder, limit):
    """[(name, bytes)] in the order of need; what is larger than a piece comes last: one arm waits for it, not all."""
    found = []
    for name in in_order(folder):
        with open(os.path.join(folder, name), "rb") as f:
            found.append((name, lzma.compress(f.read(), preset=1)))  # photographs: 6 takes four times as long for 1 %
    return sorted(found, key=lambda pair: len(pair[1]) > limit)


def write_pieces(folder, limit):
    files = compressed(folder, limit)
    place = os.path.join(folder, "pieces")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    tars = {}
    for (name, data), parts in zip(files, cuts([len(data) for _, data in files], limit)):
        for number, (piece, first, end) in enumerate(parts):
            member = tarfile.TarInfo(name + ".xz" + (f".{number}-of-{len(parts)}" if len(parts) > 1 else ""))
            member.size = end - first
            if piece not in tars:
                path = os.path.join(place, f"guide-{piece:02}.tar")
                tars[piece] = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)
            tars[piece].addfile(member, io.BytesIO(data[first:end]))
        print(f"{len(data) / 1e6:7.2f} MB, piece {', '.join(str(p[0]) for p in parts)}: {name}", file=sys.stderr)
    for tar in tars.values():
        tar.close()


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as f:
        f.write(lzma.decompress(data))
    os.replace(path + ".part", path)


def unpack(a):
    """Files of these pieces below a.out; parts of a file wait in a.out/parts for the others."""
    for piece in a.folders:
        with tarfile.open(piece) as tar:
            for member in tar:
                name, number, count = re.fullmatch(r"(.+)\.xz(?:\.(\d+)-of-(\d+))?", member.name).groups()
                data = tar.extractfile(member).read()
                if number is None:
                    put(os.path.join(a.out, name), data)
                    continue
                waiting = [os.path.join(a.out, "parts", f"{name}.{i}") for i in range(int(count))]
                os.makedirs(os.path.dirname(waiting[0]), exist_ok=True)
                with open(waiting[int(number)], "wb") as f:
                    f.write(data)
                if all(map(os.path.exists, waiting)):
                    put(os.path.join(a.out, name), b"".join(open(p, "rb").read() for p in waiting))
                    for path in waiting:
                        os.remove(path)
