// y = x W^T + b where W is one byte a weight, with a gain for each output. Each row of x is rounded to integers of two
// bytes by a scale of its own, which loses no more than bf16 itself does; upper and lower bytes are multiplied apart.
// Sums of bytes are exact in 32 bits, so that a row's result is the same, bit for bit, in any company, on any number of
// threads.
//
// Weights lie in blocks of BLOCK outputs (kernels/packed.py: Coded): groups of four inputs follow each other, each with
// the BLOCK outputs side by side; behind them the block's gains and the sums of each output's codes. The instruction that
// multiplies bytes wants those of x unsigned: 32768 is added to each integer, and as often the sum taken away again.
#include "coded.h"

#include <algorithm>

#include "upcoming.h"

namespace {

constexpr int COLUMNS = BLOCK / LANES;
constexpr int64_t STRETCH = 16;  // groups between two decisions about fetching ahead
constexpr float LARGEST = 32767.0f, PUSH = 12582912.0f;  // 1.5 * 2^23 pushes a fraction out of the mantissa
#ifdef __AVX512VNNI__
constexpr int ROWS = 4;
#else
constexpr int ROWS = 2;
#endif

INLINE i32x16 load_group(const int8_t *from) {
    i32x16 out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

// sum + the four products of x's bytes (unsigned) and w's (signed) in each lane.
INLINE i32x16 add_group(i32x16 sum, uint32_t x, i32x16 w) {
#ifdef __AVX512VNNI__
    return (i32x16)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(int(x)), (__m512i)w);
#else
    for (int i = 0; i < 4; i++) sum += int32_t(x >> 8 * i & 0xff) * ((w << (24 - 8 * i)) >> 24);
    return sum;
#endif
}

// One row: its scale in the last four bytes; what fills the last group is multiplied with zeros.
void code_row(const bf16 *x, int64_t in, uint8_t *codes) {
    f32x16 most = all(0.0f), nothing = all(0.0f);
    for (int64_t i = 0; i < in; i += LANES) {
        const f32x16 value = load(x + i, int(in - i)), size = value < 0.0f ? -value : value;
        most = size > most ? size : most;
        nothing += value * 0.0f;  // a maximum may overlook a NaN, a sum may not
    }
    const float size = max16(most) / LARGEST + sum16(nothing);
    for (int64_t i = 0; i < in; i += LANES) {
        const int count = int(std::min<int64_t>(LANES, in - i));
        f32x16 scaled = size > 0.0f ? load(x + i, count) / size : all(0.0f);
        scaled = scaled > LARGEST ? all(LARGEST) : scaled < -LARGEST ? all(-LARGEST) : scaled;
        const i32x16 whole = __builtin_convertvector((scaled + PUSH) - PUSH, i32x16) + 32768;
        for (int lane = 0; lane < (count + 3) / 4 * 4; lane++) {
            uint8_t *group = codes + (i + lane) / 4 * 8 + lane % 4;
            group[0] = uint8_t(whole[lane]);
            group[4] = uint8_t(whole[lane] >> 8);
        }
    }
    std::memcpy(codes + (in + 3) / 4 * 8, &size, sizeof size);
}

struct Ahead {
    const int8_t *next;  // the block that will be needed next
    int turn, turns;     // this tile fetches one stretch in `turns`
    Upcoming &upcoming;
};

template <int T, bool MORE> void tile_of(const uint8_t *x, const Linear &l, int64_t block, Ahead ahead, bf16 *y) {
    const int64_t groups = (l.in + 3) / 4, row = coded_row(l.in);
    const int8_t *w = static_cast<const int8_t *>(l.w) + block * coded_block(l.in);
    i32x16 low[T][COLUMNS] = {}, high[T][COLUMNS] = {};
    int turn = ahead.turn;
    for (int64_t first = 0; first < groups; first += STRETCH) {
        const int64_t end = std::min(first + STRETCH, groups);
        if (MORE) ahead.upcoming.fetch();
        if (turn-- == 0) {
            turn = ahead.turns - 1;
            const char *next = reinterpret_cast<const char *>(ahead.next + first * 4 * BLOCK);
            for (int64_t at = 0; at < (end - first) * 4 * BLOCK; at += 64) __builtin_prefetch(next + at, 0, 2);
        }
        for (int64_t i = first; i < end; i++) {
            i32x16 wide[COLUMNS];
            for (int c = 0; c < COLUMNS; c++) wide[c] = load_group(w + (i * BLOCK + c * LANES) * 4);
            for (int t = 0; t < T; t++) {
                uint32_t group[2];
                std::memcpy(group, x + t * row + 8 * i, sizeof group);
                for (int c = 0; c < COLUMNS; c++) low[t][c] = add_group(low[t][c], group[0], wide[c]);
                for (int c = 0; c < COLUMNS; c++) high[t][c] = add_group(high[t][c], group[1], wide[c]);
            }
        }
    }
    const char *tail = reinterpret_cast<const char *>(w + groups * 4 * BLOCK);
    const bf16 *b = static_cast<const bf16 *>(l.b);
    for (int t = 0; t < T; t++) {
        float size;
        std::memcpy(&size, x + t * row + 8 * groups, sizeof size);
        for (int c = 0; c < COLUMNS; c++) {
            const int64_t at = block * BLOCK + c * LANES;
            const int count = int(l.out - at);
            if (count <= 0) break;
            f32x16 gain;
            i32x16 sum;
            std::memcpy(&gain, tail + c * sizeof gain, sizeof gain);
            std::memcpy(&sum, tail + 4 * BLOCK + c * sizeof sum, sizeof sum);
            const f32x16 upper = __builtin_convertvector(high[t][c] - 128 * sum, f32x16);
            const f32x16 value = (upper * 256.0f + __builtin_convertvector(low[t][c], f32x16)) * size * gain;
            store(y + t * l.out + at, b ? value + load(b + at, count) : value, count);
        }
    }
}

// One block for every token.
template <bool MORE>
void block_of(const uint8_t *x, const Linear &l, int64_t block, const int8_t *next, bf16 *y, int64_t tokens,
              Upcoming &upcoming) {
    const int tiles = int((tokens + ROWS - 1) / ROWS);
    for (int i = 0; i < tiles; i++) {
        const Ahead ahead{next, i, tiles, upcoming};
        const int64_t t = int64_t(i) * ROWS;
        const uint8_t *from = x + t * coded_row(l.in);
        bf16 *to = y + t * l.out;
        switch (std::min<int64_t>(ROWS, tokens - t)) {
            case 1: tile_of<1, MORE>(from, l, block, ahead, to); break;
            case 2: tile_of<2, MORE>(from, l, block, ahead, to); break;
#ifdef __AVX512VNNI__
            case 3: tile_of<3, MORE>(from, l, block, ahead, to); break;
            case 4: tile_of<4, MORE>(from, l, block, ahead, to); break;
#endif
        }
    }
}

}  // namespace

void code_rows(const bf16 *x, int64_t in, uint8_t *codes, int64_t tokens, const Team &team) {
    team.split(tokens, [&](int64_t t) { code_row(x + t * in, in, codes + t * coded_row(in)); });
}

void coded(const uint8_t *codes, const Linear &l, bf16 *y, int64_t tokens, const Team &team, Upcoming &upcoming) {
    const int64_t blocks = (l.out + BLOCK - 1) / BLOCK;
    upcoming.spread(team.part(blocks) * ((tokens + ROWS - 1) / ROWS) * ((l.in + 4 * STRETCH - 1) / (4 * STRETCH)));
    const int8_t *w = static_cast<const int8_t *>(l.w);
    team.split(blocks, [&](int64_t block) {
        const int8_t *next = w + std::min(block + 1, blocks - 1) * coded_block(l.in);
        if (upcoming.is_over()) block_of<false>(codes, l, block, next, y, tokens, upcoming);
        else block_of<true>(codes, l, block, next, y, tokens, upcoming);
    });
}
