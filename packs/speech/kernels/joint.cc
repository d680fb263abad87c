#include "packs/speech/kernels/joint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "packs/speech/kernels/element.h"
#include "trireme/error.h"
#include "trireme/kernels/philox.h"
#include "trireme/kernels/simd.h"

namespace trireme::speech {
namespace {

using internal::from_f32;

constexpr int kParts = 8;  // of a row: one for each bit of a byte of the mask

/// How far ahead the backward asks for memory, since processors do not look beyond a page.
constexpr std::int64_t kAhead = 1024;

struct Width {
  std::int64_t num_elements;
  std::int64_t num_bytes;  ///< Of the mask; elements of a part.
};

struct Dropout {
  std::int32_t threshold = 0;  ///< q * 2^16
  float scale = 1;             ///< 1 / (1 - q)
};

/// A row of `out`. words [4, num_bytes]: of philox_row. bits [num_bytes]: for the call.
template <typename T>
TRIREME_INLINE_LOOP void join_row(const T* f, const T* g, const Dropout& dropout,
                                  const std::uint32_t* words, std::uint32_t* bits, T* out,
                                  std::uint8_t* mask, const Width& width) {
  std::fill_n(bits, width.num_bytes, 0U);
  for (int v = 0; v < kParts; ++v) {
    const std::int64_t begin = v * width.num_bytes;
    const std::int64_t n = std::min(width.num_bytes, width.num_elements - begin);
    const std::uint32_t* word = words + v / 2 * width.num_bytes;
    const int shift = v % 2 * 16;
    const std::uint32_t bit = 1U << v;
    TRIREME_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      const float sum = kernels::to_f32(f[begin + i]) + kernels::to_f32(g[begin + i]);
      const auto half = static_cast<std::int32_t>(word[i] >> shift & 0xFFFFU);
      const bool passes = !(sum <= 0.0F) & (half >= dropout.threshold);  // NaN passes
      out[begin + i] = from_f32<T>(passes ? sum * dropout.scale : 0.0F);
      bits[i] |= passes ? bit : 0U;
    }
  }
  for (std::int64_t i = 0; i < width.num_bytes; ++i) mask[i] = static_cast<std::uint8_t>(bits[i]);
}

/// A row of dout, added to those of df and dg.
template <typename T>
TRIREME_INLINE_LOOP void add_row(const T* dout, const std::uint8_t* mask, std::uint32_t* bits,
                                 float* df, float* dg, const Width& width) {
  for (std::int64_t i = 0; i < width.num_elements; i += 16) __builtin_prefetch(dout + kAhead + i);
  for (std::int64_t i = 0; i < width.num_bytes; ++i) bits[i] = mask[i];
  for (int v = 0; v < kParts; ++v) {
    const std::int64_t begin = v * width.num_bytes;
    const std::int64_t n = std::min(width.num_bytes, width.num_elements - begin);
    const std::uint32_t bit = 1U << v;
    TRIREME_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) {
      // By a mask: a load that depends on the bit would keep bf16 from vectors.
      const std::uint32_t passes = (bits[i] & bit) != 0 ? ~0U : 0U;
      const auto gradient = std::bit_cast<std::uint32_t>(kernels::to_f32(dout[begin + i]));
      const float d = std::bit_cast<float>(gradient & passes);
      df[begin + i] += d;
      dg[begin + i] += d;
    }
  }
}

template <typename T>
TRIREME_AVX2 void join_row_avx2(const T* f, const T* g, const Dropout& dropout,
                                const std::uint32_t* words, std::uint32_t* bits, T* out,
                                std::uint8_t* mask, const Width& width) {
  join_row(f, g, dropout, words, bits, out, mask, width);
}
template <typename T>
TRIREME_AVX512 void join_row_avx512(const T* f, const T* g, const Dropout& dropout,
                                    const std::uint32_t* words, std::uint32_t* bits, T* out,
                                    std::uint8_t* mask, const Width& width) {
  join_row(f, g, dropout, words, bits, out, mask, width);
}

template <typename T>
TRIREME_AVX2 void add_row_avx2(const T* dout, const std::uint8_t* mask, std::uint32_t* bits,
                               float* df, float* dg, const Width& width) {
  add_row(dout, mask, bits, df, dg, width);
}
template <typename T>
TRIREME_AVX512 void add_row_avx512(const T* dout, const std::uint8_t* mask, std::uint32_t* bits,
                                   float* df, float* dg, const Width& width) {
  add_row(dout, mask, bits, df, dg, width);
}

/// A call of either function: its arguments, checked.
class JointCall {
 public:
  JointCall(const Lattices& lattices, const JointSettings& options)
      : lattices_(lattices),
        width_{options.width, joint_mask_bytes(options.width)},
        key_{static_cast<std::uint32_t>(options.seed),
             static_cast<std::uint32_t>(options.seed >> 32)} {
    check(lattices);
    if (options.width < 1) {
      throw Error(ErrorKind::kInvalidArgument,
                  "joint: expected a width of 1 or more, got " + std::to_string(options.width));
    }
    const double p = options.drop_probability;
    if (!(p >= 0 && p < 1)) {
      throw Error(ErrorKind::kInvalidArgument,
                  "joint: expected a probability of dropout in [0, 1), got " + std::to_string(p));
    }
    const double threshold = std::min(std::round(p * 65536), 65535.0);
    dropout_ = {.threshold = static_cast<std::int32_t>(threshold),
                .scale = static_cast<float>(65536 / (65536 - threshold))};
  }

  template <typename T>
  void forward(std::int64_t b, const T* f, const T* g, T* out, std::uint8_t* mask) const {
    const auto join = kernels::has_avx512() ? join_row_avx512<T>
                      : kernels::has_avx2() ? join_row_avx2<T>
                                            : join_row<T>;
    std::vector<std::uint32_t> words(5 * width_.num_bytes);
    std::uint32_t* bits = &words[4 * width_.num_bytes];
    const std::int64_t stride = lattices_.frame_stride(b);
    const std::int64_t positions = lattices_.num_positions(b);
    const std::int64_t H = width_.num_elements;
    for (std::int64_t t = 0; t < lattices_.num_frames[b]; ++t) {
      for (std::int64_t u = 0; u < positions; ++u) {
        const std::int64_t row = lattices_.first_row(b) + t * stride + u;
        if (dropout_.threshold > 0) draw(b, t, u, words.data());
        join(f + frame(b, t), g + position(b, u), dropout_, words.data(), bits, out + row * H,
             mask + row * width_.num_bytes, width_);
      }
    }
    if (!lattices_.is_packed()) clear_padding(b, out);
  }

  template <typename T>
  void backward(std::int64_t b, const T* dout, const std::uint8_t* mask, float* df,
                float* dg) const {
    const auto add = kernels::has_avx512() ? add_row_avx512<T>
                     : kernels::has_avx2() ? add_row_avx2<T>
                                           : add_row<T>;
    std::vector<std::uint32_t> bits(width_.num_bytes);
    const std::int64_t H = width_.num_elements;
    std::fill(df + frame(b, 0), df + frame(b + 1, 0), 0.0F);
    std::fill(dg + position(b, 0), dg + position(b + 1, 0), 0.0F);
    for (std::int64_t t = 0; t < lattices_.num_frames[b]; ++t) {
      for (std::int64_t u = 0; u <= lattices_.num_labels[b]; ++u) {
        const std::int64_t row = lattices_.first_row(b) + t * lattices_.frame_stride(b) + u;
        add(dout + row * H, mask + row * width_.num_bytes, bits.data(), df + frame(b, t),
            dg + position(b, u), width_);
      }
    }
    const auto scale = [&](float x) { return x * dropout_.scale; };
    std::transform(df + frame(b, 0), df + frame(b + 1, 0), df + frame(b, 0), scale);
    std::transform(dg + position(b, 0), dg + position(b + 1, 0), dg + position(b, 0), scale);
  }

 private:
  std::int64_t frame(std::int64_t b, std::int64_t t) const {
    return (b * lattices_.max_frames + t) * width_.num_elements;
  }
  std::int64_t position(std::int64_t b, std::int64_t u) const {
    return (b * (lattices_.max_labels + 1) + u) * width_.num_elements;
  }

  void draw(std::int64_t b, std::int64_t t, std::int64_t u, std::uint32_t* words) const {
    kernels::philox_row({static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(t),
                         static_cast<std::uint32_t>(b)},
                        key_, width_.num_bytes, words);
  }

  template <typename T>
  void clear_padding(std::int64_t b, T* out) const {
    const std::int64_t U = lattices_.max_labels + 1;
    const std::int64_t H = width_.num_elements;
    for (std::int64_t t = 0; t < lattices_.max_frames; ++t) {
      T* row = out + (lattices_.first_row(b) + t * U) * H;
      const bool is_frame = t < lattices_.num_frames[b];
      std::fill(row + (is_frame ? lattices_.num_positions(b) : 0) * H, row + U * H, T{});
    }
  }

  const Lattices& lattices_;
  const Width width_;
  const std::array<std::uint32_t, 2> key_;
  Dropout dropout_;
};

template <typename T>
void any_joint(const Lattices& lattices, const JointSettings& options, const T* f, const T* g,
               T* out, std::uint8_t* mask, const kernels::Spread& spread) {
  const JointCall call(lattices, options);
  spread(lattices.num_samples(), [&](std::int64_t b) { call.forward(b, f, g, out, mask); });
}

template <typename T>
void any_backward(const Lattices& lattices, const JointSettings& options, const T* dout,
                  const std::uint8_t* mask, float* df, float* dg, const kernels::Spread& spread) {
  const JointCall call(lattices, options);
  spread(lattices.num_samples(), [&](std::int64_t b) { call.backward(b, dout, mask, df, dg); });
}

}  // namespace

void joint(const Lattices& lattices, const JointSettings& options, const float* f, const float* g,
           float* out, std::uint8_t* mask, const kernels::Spread& spread) {
  any_joint(lattices, options, f, g, out, mask, spread);
}

void joint(const Lattices& lattices, const JointSettings& options, const kernels::Bf16* f,
           const kernels::Bf16* g, kernels::Bf16* out, std::uint8_t* mask,
           const kernels::Spread& spread) {
  any_joint(lattices, options, f, g, out, mask, spread);
}

void joint_backward(const Lattices& lattices, const JointSettings& options, const float* dout,
                    const std::uint8_t* mask, float* df, float* dg, const kernels::Spread& spread) {
  any_backward(lattices, options, dout, mask, df, dg, spread);
}

void joint_backward(const Lattices& lattices, const JointSettings& options,
                    const kernels::Bf16* dout, const std::uint8_t* mask, float* df, float* dg,
                    const kernels::Spread& spread) {
  any_backward(lattices, options, dout, mask, df, dg, spread);
}

}  // namespace trireme::speech
