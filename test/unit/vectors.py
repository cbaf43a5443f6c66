#!/usr/bin/env python3
"""Prints the vectors of test_vectors.c, calculated apart from the C code.

splitmix64 (Steele, Lea, Flood 2014) and xorshift128+ with shifts 23, 18, 5
(Vigna 2017) in big integers; the jumps by multiplying out the transition as a
matrix of 128 x 128 bits, without polynomials.

    python3 test/unit/vectors.py > test/unit/vectors.h
"""

MASK = (1 << 64) - 1
SEEDS = [0, 1, 42, 1 << 63, MASK]
STREAMS = [0, 1, 2, 7]


def splitmix64(state):
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield z ^ z >> 31


def step(state):
    """The state, s1 above s0 in one integer of 128 bits, after one number."""
    x, y = state & MASK, state >> 64
    x ^= x << 23 & MASK
    return (x ^ y ^ x >> 18 ^ y >> 5) << 64 | y


def number(state):
    return (state & MASK) + (state >> 64) & MASK


def seeded(seed):
    numbers = splitmix64(seed)
    first = next(numbers)
    return next(numbers) << 64 | first


def times(matrix, vector):
    total = 0
    for i, column in enumerate(matrix):
        if vector >> i & 1:
            total ^= column
    return total


def squared(matrix):
    return [times(matrix, column) for column in matrix]


def jump():
    """The transition to the power of 2^64."""
    matrix = [step(1 << i) for i in range(128)]
    for _ in range(64):
        matrix = squared(matrix)
    return matrix


def row(words, seed, *stream):
    print("\t{%s," % ", ".join(["UINT64CONST(0x%016x)" % seed, *map(str, stream)]))
    print("\t{%s}}," % ",\n\t".join("UINT64CONST(0x%016x)" % w for w in words))


print("/* Printed by vectors.py. */\n")
print("static const struct {uint64 seed; uint64 numbers[8];} splitmix64_vectors[] = {")
for seed in SEEDS:
    numbers = splitmix64(seed)
    row([next(numbers) for _ in range(8)], seed)
print("};\n")

jump_matrix = jump()
print("static const struct {uint64 seed; int stream; uint64 numbers[8];} xorshift_vectors[] = {")
for seed in SEEDS:
    for stream in STREAMS:
        state = seeded(seed)
        for _ in range(stream):
            state = times(jump_matrix, state)
        words = []
        for _ in range(8):
            words.append(number(state))
            state = step(state)
        row(words, seed, stream)
print("};")
