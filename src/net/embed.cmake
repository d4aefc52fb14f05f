# SPDX-License-Identifier: Apache-2.0
# embed.cmake - a file as a NUL-terminated array of bytes in C: cmake -DINPUT=x -DOUTPUT=x.c -DNAME=array -P embed.cmake
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" lines "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," array "${lines}")
file(WRITE ${OUTPUT} "extern const unsigned char ${NAME}[];\nconst unsigned char ${NAME}[] = {\n${array}0};\n")
