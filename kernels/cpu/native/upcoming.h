// What an update of a linear's output will read, brought closer while the linear itself is computed.
//
// A linear of many rows waits for the multiplier and leaves memory idle; an update by many adapters waits for memory.
// Fetched a few cache lines at a time in between, the adapters' bytes cost the batch less.
#pragma once
#include <algorithm>
#include <vector>

#include "lora.h"

class Upcoming {
public:
    Upcoming() = default;

    // The matrices that this thread will read in `add_lora`, where tasks go round. size: bytes of an element.
    Upcoming(const Table &table, const Segments &segments, int64_t in, int64_t size, const Team &team) {
        static thread_local std::vector<Piece> pieces;
        pieces.clear();
        for (int64_t i = team.rank; i < segments.chunks * table.slices; i += team.size) {
            const int64_t chunk = i / table.slices, slice = i % table.slices;
            if (chunk && segments.slots[chunk] == segments.slots[chunk - 1]) continue;
            const int64_t entry = segments.slots[chunk] * table.slices + slice, rank = table.ranks[entry];
            const int64_t out = table.out_offsets[slice + 1] - table.out_offsets[slice];
            if (!rank) continue;
            pieces.push_back(piece_at(table.pointers[entry * 4], rank * in * size));
            pieces.push_back(piece_at(table.pointers[entry * 4 + 1], rank * out * size));
        }
        now = pieces.data();
        last = now + pieces.size();
    }

    // There will be about so many calls of `fetch`.
    void spread(int64_t calls) {
        int64_t bytes = 0;
        for (const Piece *piece = now; piece != last; piece++) bytes += piece->end - piece->from;
        step = calls ? (bytes / calls + LINE) / LINE * LINE : 0;
    }

    bool is_over() const { return now == last; }

    // The next few lines: never so many that the caller waits for memory itself.
    __attribute__((always_inline)) void fetch() {
        for (int64_t room = step; room > 0 && !is_over();) {
            const char *end = std::min(now->from + room, now->end);
            room -= end - now->from;
            for (; now->from < end; now->from += LINE) __builtin_prefetch(now->from, 0, 2);
            if (now->from >= now->end) now++;
        }
    }

private:
    struct Piece {
        const char *from, *end;
    };
    static constexpr int64_t LINE = 64;

    static Piece piece_at(int64_t pointer, int64_t bytes) {
        const char *from = reinterpret_cast<const char *>(pointer);
        return {from, from + bytes};
    }

    Piece *now = nullptr, *last = nullptr;
    int64_t step = 0;
};
