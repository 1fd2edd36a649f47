#!/usr/bin/env python3
"""Makes ELF files ask for no version of glibc's symbols above 2.28, in place.

    old_glibc.py FILE ...            rewrites
    old_glibc.py --check FILE ...    says what is above, exit status 1
    old_glibc.py --exports           the linker's options for what old_glibc.c defines

glibc gave new version names to functions that it moved into libc.so.6 (2.34) or whose corner cases it changed (exp of 2.29 sets
no errno): a reference to them without a version finds the old one where that is all there is.  Functions that 2.28 has under
no version must be among those that old_glibc.c defines; anything else is an error here, not on the node.

make dist links the program once more and takes the shared libraries of the build machine along,
OpenBLAS among them. This program then rewrites the version tables of all of them, so that
nothing asks for a version of glibc's symbols above 2.28: functions that glibc has had for long
and gave a new version later (dlopen, pthread_create, exp) are asked for without a version. What
2.28 does not have at all (stat, gettid, …) is in .ci/old_glibc.c, which is linked into the
program, where libraries find it first. A symbol in neither list is an error of make dist.
tests/cli/36_dist.sh checks the result with readelf and runs it in an empty environment.
"""
import re
import struct
import sys

LIMIT = (2, 28)
DEFINED = set("""stat lstat fstat fstatat stat64 lstat64 fstat64 fstatat64 gettid arc4random mallinfo2 pthread_clockjoin_np pthread_cond_clockwait
    __libc_single_threaded""".split())
# In 2.28 under an older name of version, in libc, libm, libpthread, libdl or librt.
OLDER = set("""exp exp2 log log2 pow hypot expf exp2f logf log2f powf fmod fmodf __libc_start_main dlopen dlclose dlerror dlsym dladdr dlvsym
    thrd_exit pthread_sigmask pthread_once pthread_create pthread_join pthread_detach pthread_key_create
    __pthread_key_create pthread_key_delete pthread_getspecific pthread_setspecific pthread_timedjoin_np pthread_setname_np
    pthread_getname_np pthread_setaffinity_np pthread_getaffinity_np pthread_attr_setaffinity_np pthread_attr_getstack
    pthread_attr_getstacksize pthread_attr_setstacksize pthread_attr_setstack pthread_getattr_np pthread_condattr_setclock
    pthread_mutex_trylock pthread_mutex_timedlock pthread_mutexattr_init pthread_mutexattr_destroy pthread_mutexattr_settype
    pthread_mutexattr_gettype pthread_rwlock_init pthread_rwlock_destroy pthread_rwlock_rdlock pthread_rwlock_tryrdlock
    pthread_rwlock_trywrlock pthread_rwlock_wrlock pthread_rwlock_unlock pthread_rwlockattr_init pthread_rwlockattr_destroy
    pthread_rwlockattr_setkind_np pthread_spin_init pthread_spin_lock pthread_spin_unlock pthread_barrier_init
    pthread_barrier_wait pthread_barrier_destroy pthread_kill pthread_cancel pthread_tryjoin_np sem_init sem_post sem_wait sem_destroy
    timer_create timer_delete timer_settime timer_gettime shm_open shm_unlink""".split())
TARGET = b"GLIBC_2.2.5"
DYNSYM, VERNEED, VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF


def elf_hash(name):
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def above(name):
    found = re.fullmatch(rb"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
    return bool(found) and (int(found[1]), int(found[2])) > LIMIT


class Elf:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"old_glibc: {path} is no 64-bit ELF file")
        offset, = struct.unpack_from("<Q", self.bytes, 40)
        size, count = struct.unpack_from("<HH", self.bytes, 58)
        # name type flags addr offset size link info align entsize
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + i * size) for i in range(count)]

    def section(self, kind):
        return next((s for s in self.sections if s[1] == kind), None)

    def text(self, section, at):
        begin = self.sections[section][4] + at
        return bytes(self.bytes[begin:self.bytes.index(0, begin)])

    def needed(self):
        """(offset of the entry, index that symbols name it by, version's name)"""
        table = self.section(VERNEED)
        if not table:
            return
        at = table[4]
        for _ in range(table[7]):
            _, count, _, aux, following = struct.unpack_from("<HHIII", self.bytes, at)
            entry = at + aux
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.bytes, entry)
                yield entry, index, self.text(table[6], name)
                entry += step
            at += following

    def symbols(self):
        """(offset of its version, its version's index, name) of what is not defined here"""
        table, versions = self.section(DYNSYM), self.section(VERSYM)
        if not table or not versions:
            return
        for i in range(table[5] // 24):
            name, _, _, where, _, _ = struct.unpack_from("<IBBHQQ", self.bytes, table[4] + 24 * i)
            place = versions[4] + 2 * i
            if where == 0:
                yield place, struct.unpack_from("<H", self.bytes, place)[0] & 0x7FFF, self.text(table[6], name)

    def place_of(self, text):
        table = self.sections[self.section(VERNEED)[6]]
        at = self.bytes.find(b"\0" + text + b"\0", table[4], table[4] + table[5])
        return at + 1 - table[4] if at >= 0 else None


def rewrite(path):
    elf = Elf(path)
    new = {index: (entry, name) for entry, index, name in elf.needed() if above(name)}
    if not new:
        return
    target = elf.place_of(TARGET)
    if target is None:
        raise SystemExit(f"old_glibc: {path} names no {TARGET.decode()}")
    for place, index, name in elf.symbols():
        if index not in new:
            continue
        if name.decode() not in DEFINED | OLDER:
            raise SystemExit(f"old_glibc: {path} needs {name.decode()} of {new[index][1].decode()}, which glibc 2.28 has not:"
                             " define it in old_glibc.c, or name it in old_glibc.py if it is there under an older version")
        struct.pack_into("<H", elf.bytes, place, 1)
    for entry, _ in new.values():
        struct.pack_into("<I", elf.bytes, entry, elf_hash(TARGET))
        struct.pack_into("<I", elf.bytes, entry + 8, target)
    with open(path, "r+b") as file:
        file.write(elf.bytes)


def check(paths):
    bad = 0
    for path in paths:
        for _, _, name in Elf(path).needed():
            if above(name):
                print(f"{path} needs {name.decode()}")
                bad = 1
    return bad


if sys.argv[1:] == ["--exports"]:
    print(" ".join(f"-Wl,--export-dynamic-symbol={name}" for name in sorted(DEFINED)))
elif sys.argv[1] == "--check":
    sys.exit(check(sys.argv[2:]))
else:
    for each in sys.argv[1:]:
        rewrite(each)
