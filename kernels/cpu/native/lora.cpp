// y[rows of a chunk, columns of a slice] += scaling * (x A^T) B, at the slot's true rank; where the slot has a gain or
// a shift, y becomes y * gain + shift first.
//
// One task is one (chunk, slice): it alone writes its rows and columns, so nothing is atomic and the result does not
// depend on threads, on the other chunks, or on where in a chunk a token sits.
#include "lora.h"

#include <vector>

#include "dot.h"

namespace {

constexpr int TILE = 4;  // tokens that share one pass over A and B

// What happens to the base's output first; null where nothing does.
struct Columns {
    const float *gain, *shift;
};

// One expression whichever of the two is there: how a compiler rounds it must not depend on the tile around it.
INLINE f32x16 changed(f32x16 y, Columns columns, int64_t at, int count) {
    const f32x16 gain = columns.gain ? load(columns.gain + at, count) : all(1.0f);
    const f32x16 shift = columns.shift ? load(columns.shift + at, count) : all(0.0f);
    return y * gain + shift;
}

template <int T, int C, class W>
INLINE void expand(const float *h, int64_t rank, const W *b, int64_t out, int64_t first, float (*sum)[C * LANES]) {
    f32x16 acc[T][C];
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) acc[t][c] = all(0.0f);
    for (int64_t r = 0; r < rank; r++)
        for (int c = 0; c < C; c++) {
            f32x16 wide = load(b + r * out + first + c * LANES, int(out - first - c * LANES));
            for (int t = 0; t < T; t++) acc[t][c] += h[t * rank + r] * wide;
        }
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) store16(sum[t] + c * LANES, acc[t][c]);
}

template <int T, int C, bool CHANGED, class W>
INLINE void add_columns(const float *h, int64_t rank, const W *b, int64_t out, int64_t first, float scaling,
                        Columns columns, W *const *y) {
    alignas(ALIGN) float sum[T][C * LANES];
    expand<T, C>(h, rank, b, out, first, sum);
    for (int t = 0; t < T; t++)
        for (int64_t at = 0; at < C * LANES && first + at < out; at += LANES) {
            const int count = int(out - first - at);
            f32x16 base = load(y[t] + first + at, count);
            if (CHANGED) base = changed(base, columns, first + at, count);
            store(y[t] + first + at, base + scaling * load16(sum[t] + at), count);
        }
}

template <int T, bool CHANGED, class W>
void tile(const float *x, int64_t in, const W *a, const W *b, int64_t rank, int64_t out, float scaling, Columns columns,
          W *const *y, float *h) {
    constexpr int WIDE = T == 1 ? 4 : 2;
    dots_of<T>(x, in, a, in, rank, h, rank);
    int64_t first = 0;
    for (; first + WIDE * LANES <= out; first += WIDE * LANES)
        add_columns<T, WIDE, CHANGED>(h, rank, b, out, first, scaling, columns, y);
    for (; first < out; first += LANES) add_columns<T, 1, CHANGED>(h, rank, b, out, first, scaling, columns, y);
}

template <class W> struct Call {
    W *y;
    const W *x;
    int64_t y_stride, in;
    const Table &table;
    const Segments &segments;
};

template <class W> void run_task(const Call<W> &c, int64_t chunk, int64_t slice, std::vector<float> &scratch) {
    const int64_t entry = int64_t(c.segments.slots[chunk]) * c.table.slices + slice, rank = c.table.ranks[entry];
    if (rank == 0) return;
    const W *a = reinterpret_cast<const W *>(c.table.pointers[entry * 4]);
    const W *b = reinterpret_cast<const W *>(c.table.pointers[entry * 4 + 1]);
    const Columns columns{reinterpret_cast<const float *>(c.table.pointers[entry * 4 + 2]),
                          reinterpret_cast<const float *>(c.table.pointers[entry * 4 + 3])};
    const int64_t column = c.table.out_offsets[slice], out = c.table.out_offsets[slice + 1] - column;
    scratch.resize(TILE * (c.in + rank));
    float *x = scratch.data(), *h = x + TILE * c.in;
    for (int32_t done = 0; done < c.segments.lengths[chunk];) {
        const int count = c.segments.lengths[chunk] - done >= TILE ? TILE : 1;
        W *y[TILE];
        for (int t = 0; t < count; t++) {
            const int64_t row = c.segments.order[c.segments.starts[chunk] + done + t];
            y[t] = c.y + row * c.y_stride + column;
            for (int64_t i = 0; i < c.in; i++) x[t * c.in + i] = to_float(c.x[row * c.in + i]);
        }
        const bool is_changed = columns.gain || columns.shift;
        auto add = count == TILE ? (is_changed ? tile<TILE, true, W> : tile<TILE, false, W>)
                                 : (is_changed ? tile<1, true, W> : tile<1, false, W>);
        add(x, c.in, a, b, rank, out, c.table.scalings[entry], columns, y, h);
        done += count;
    }
}

}  // namespace

template <class T>
void add_lora(T *y, const T *x, int64_t out, int64_t in, const Table &table, const Segments &segments, const Team &team) {
    const Call<T> call{y, x, out, in, table, segments};
    static thread_local std::vector<float> scratch;
    team.share(segments.chunks * table.slices,
               [&](int64_t i) { run_task(call, i / table.slices, i % table.slices, scratch); });
}

template void add_lora<bf16>(bf16 *, const bf16 *, int64_t, int64_t, const Table &, const Segments &, const Team &);
template void add_lora<float>(float *, const float *, int64_t, int64_t, const Table &, const Segments &, const Team &);

// y: [tokens, y_stride], x: [tokens, in], both bf16 or both float32, as the weights. Tables: kernels/adapter_table.py.
extern "C" void veneer_add_lora(void *y, const void *x, int64_t y_stride, int64_t in, int64_t chunks, int64_t slices,
                                const int32_t *order, const int32_t *slots, const int32_t *starts,
                                const int32_t *lengths, const int32_t *ranks, const int32_t *out_offsets,
                                const int64_t *pointers, const float *scalings, int is_bf16, int threads) {
    const Table table{ranks, out_offsets, pointers, scalings, slices};
    const Segments segments{order, slots, starts, lengths, chunks};
    with_team(chunks * slices > 1 ? threads : 1, [&](const Team &team) {
        if (is_bf16) return add_lora(static_cast<bf16 *>(y), static_cast<const bf16 *>(x), y_stride, in, table, segments, team);
        add_lora(static_cast<float *>(y), static_cast<const float *>(x), y_stride, in, table, segments, team);
    });
}
