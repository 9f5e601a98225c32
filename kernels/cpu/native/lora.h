// The adapters' update of one linear's output.
#pragma once
#include "team.h"
#include "vec.h"

// Tokens grouped by slot: kernels/segments.py.
struct Segments {
    const int32_t *order, *slots, *starts, *lengths;
    int64_t chunks;
};

// One place in the model: kernels/adapter_table.py.
struct Table {
    const int32_t *ranks, *out_offsets;
    const int64_t *pointers;
    const float *scalings;
    int64_t slices;

    // Whether any of the batch's adapters changes this linear.
    bool concerns(const Segments &s) const {
        for (int64_t i = 0; i < s.chunks; i++)
            for (int64_t slice = 0; slice < slices; slice++)
                if (ranks[s.slots[i] * slices + slice]) return true;
        return false;
    }
};

// y: [tokens, out], x: [tokens, in], of the weights' type. Ends with a wait.
template <class T>
void add_lora(T *y, const T *x, int64_t out, int64_t in, const Table &table, const Segments &segments, const Team &team);
