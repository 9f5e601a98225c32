// Sixteen floats at a time, in GCC's vector types: AVX-512, AVX2 or plain SSE, whatever -march=native offers.
// Every sum has one fixed order, so that a token's numbers never depend on its batch.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __F16C__
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));

constexpr int LANES = 16;
constexpr int ALIGN = 64;
constexpr float E3M4_UNIT = 4096.0f;  // half precision has 12 more exponents below 1 than e3m4

struct bf16 { uint16_t bits; };
struct e3m4 { uint8_t bits; };

template <class To, class From> INLINE To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To out;
    std::memcpy(&out, &value, sizeof out);
    return out;
}

INLINE f32x16 all(float value) { return f32x16{} + value; }

INLINE float to_float(float value) { return value; }
INLINE float to_float(bf16 value) { return bits_as<float>(uint32_t(value.bits) << 16); }

// Round to nearest even; a NaN stays one.
template <class T> T from_float(float value);
template <> inline __attribute__((always_inline)) float from_float<float>(float value) { return value; }
template <> inline __attribute__((always_inline)) bf16 from_float<bf16>(float value) {
    uint32_t bits = bits_as<uint32_t>(value);
    if (value != value) return {uint16_t((bits >> 16) | 0x40)};
    return {uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

INLINE f32x16 load16(const float *from) {
    f32x16 out;
    std::memcpy(&out, from, sizeof out);
    return out;
}

// GCC 12 converts vectors of this size in halves; with AVX-512 one instruction does it.
INLINE u32x16 widen16(u16x16 narrow) {
#ifdef __AVX512F__
    return (u32x16)_mm512_cvtepu16_epi32((__m256i)narrow);
#else
    return __builtin_convertvector(narrow, u32x16);
#endif
}

INLINE u16x16 narrow16(u32x16 wide) {
#ifdef __AVX512F__
    return (u16x16)_mm512_cvtepi32_epi16((__m512i)wide);
#else
    return __builtin_convertvector(wide, u16x16);
#endif
}

INLINE f32x16 load16(const bf16 *from) {
    u16x16 raw;
    std::memcpy(&raw, from, sizeof raw);
    return bits_as<f32x16>(widen16(raw) << 16);
}

// A code without its scale, in units of E3M4_UNIT: the caller has a scale to multiply by anyway. Through half precision
// where the machine has it: there, e3m4's subnormals are exact and full speed, while as float32 bit patterns they would
// be denormal operands.
INLINE f32x16 load16(const e3m4 *from) {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__F16C__)
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 6), _mm256_set1_epi16(int16_t(0x9fff)));
    return (f32x16)_mm512_cvtph_ps(half);
#elif defined(__AVX2__) && defined(__F16C__)
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    __m256i half = _mm256_and_si256(_mm256_slli_epi16(wide, 6), _mm256_set1_epi16(int16_t(0x9fff)));
    struct { __m256 low, high; } pair = {_mm256_cvtph_ps(_mm256_castsi256_si128(half)),
                                         _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
    return bits_as<f32x16>(pair);
#else
    u8x16 raw;
    std::memcpy(&raw, from, sizeof raw);
    u32x16 wide = __builtin_convertvector(raw, u32x16);
    return bits_as<f32x16>(((wide & 0x80) << 24) | ((wide & 0x7f) << 19)) * 0x1p112f;
#endif
}

// The first `count` < 16 elements; the other lanes are zero, and memory behind them is not touched.
template <class T> INLINE f32x16 load_some(const T *from, int count) {
    T padded[LANES] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return load16(padded);
}

template <class T> INLINE f32x16 load(const T *from, int count) {
    return count >= LANES ? load16(from) : load_some(from, count);
}

INLINE void store16(float *to, f32x16 value) { std::memcpy(to, &value, sizeof value); }
INLINE void store16(bf16 *to, f32x16 value) {
    u32x16 bits = bits_as<u32x16>(value);
    u32x16 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    u32x16 nan = (bits >> 16) | 0x40;
    u16x16 narrow = narrow16(value != value ? nan : rounded);
    std::memcpy(to, &narrow, sizeof narrow);
}

template <class T> INLINE void store(T *to, f32x16 value, int count) {
    if (count >= LANES) return store16(to, value);
    T padded[LANES];
    store16(padded, value);
    std::memcpy(to, padded, count * sizeof(T));
}

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x4 __attribute__((vector_size(16)));

// Halves against halves, down to four: one order, whatever the instruction set.
template <class Fold> INLINE float fold16(f32x16 value, Fold fold) {
    struct Eights { f32x8 low, high; };
    struct Fours { f32x4 low, high; };
    const Eights eights = bits_as<Eights>(value);
    const Fours fours = bits_as<Fours>(fold(eights.low, eights.high));
    const f32x4 four = fold(fours.low, fours.high);
    const f32x4 pair = fold(four, __builtin_shufflevector(four, four, 2, 3, 0, 1));
    return fold(pair, __builtin_shufflevector(pair, pair, 1, 0, 3, 2))[0];
}

INLINE float sum16(f32x16 value) {
    return fold16(value, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}

INLINE float max16(f32x16 value) {
    return fold16(value, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// e^x for x <= 0 (softmax) and moderate positive x (SiLU), to about 1 ulp; below -87.3 it is 0; NaN stays NaN.
INLINE f32x16 exp16(f32x16 x) {
    const float LOG2E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f, ROUND = 12582912.0f;
    i32x16 tiny = x < -87.3f;
    x = tiny ? all(-87.3f) : x;
    x = x > 88.0f ? all(88.0f) : x;
    f32x16 n = (x * LOG2E + ROUND) - ROUND;
    f32x16 r = (x - n * LN2_HIGH) - n * LN2_LOW;
    f32x16 p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    f32x16 finite = n == n ? n : all(0.0f);
    f32x16 power = bits_as<f32x16>((__builtin_convertvector(finite, i32x16) + 127) << 23);
    return tiny ? all(0.0f) : p * power;
}

INLINE float exp1(float x) { return exp16(all(x))[0]; }

// cap tanh(x / cap): scores and logits of Gemma 2.
INLINE f32x16 soft_cap(f32x16 x, float cap) {
    const i32x16 negative = x < 0.0f;
    const f32x16 shrunk = exp16((negative ? x : -x) * (2.0f / cap)), size = cap * ((1.0f - shrunk) / (1.0f + shrunk));
    return negative ? -size : size;
}
