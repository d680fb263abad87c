#include "packs/speech/kernels/loss.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "packs/speech/kernels/diagonals.h"
#include "packs/speech/kernels/rows.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

using internal::RowSum;
using internal::Skewed;

template <typename T>
TRIREME_AVX2 RowSum row_sum_avx2(const T* x, std::int64_t n) {
  return internal::row_sum(x, n);
}
template <typename T>
TRIREME_AVX512 RowSum row_sum_avx512(const T* x, std::int64_t n) {
  return internal::row_sum(x, n);
}

template <typename T>
TRIREME_AVX2 void gradient_row_avx2(const T* x, float shift, float scale, T* gradient,
                                    std::int64_t n) {
  internal::gradient_row(x, shift, scale, gradient, n);
}
template <typename T>
TRIREME_AVX512 void gradient_row_avx512(const T* x, float shift, float scale, T* gradient,
                                        std::int64_t n) {
  internal::gradient_row(x, shift, scale, gradient, n);
}

TRIREME_AVX2 double alpha_avx2(const Skewed& s) { return internal::alpha_loop(s); }
TRIREME_AVX512 double alpha_avx512(const Skewed& s) { return internal::alpha_loop(s); }
TRIREME_AVX2 void occupy_avx2(const Skewed& s, double total) { internal::occupy_loop(s, total); }
TRIREME_AVX512 void occupy_avx512(const Skewed& s, double total) {
  internal::occupy_loop(s, total);
}

/// The loops for this processor.
template <typename T>
struct Loops {
  RowSum (*row_sum)(const T*, std::int64_t) = kernels::has_avx512() ? row_sum_avx512<T>
                                              : kernels::has_avx2() ? row_sum_avx2<T>
                                                                    : internal::row_sum<T>;
  void (*gradient_row)(const T*, float, float, T*, std::int64_t) = kernels::has_avx512()
                                                                       ? gradient_row_avx512<T>
                                                                   : kernels::has_avx2()
                                                                       ? gradient_row_avx2<T>
                                                                       : internal::gradient_row<T>;
  double (*alpha)(const Skewed&) = kernels::has_avx512() ? alpha_avx512
                                   : kernels::has_avx2() ? alpha_avx2
                                                         : internal::alpha_loop;
  void (*occupy)(const Skewed&, double) = kernels::has_avx512() ? occupy_avx512
                                          : kernels::has_avx2() ? occupy_avx2
                                                                : internal::occupy_loop;
};

void check_targets(const Lattices& lattices, const TransducerTargets& targets) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::kInvalidArgument, "transducer loss: " + what);
  };
  const std::string vocabulary = "[0, " + std::to_string(targets.vocabulary) + ")";
  if (targets.blank < 0 || targets.blank >= targets.vocabulary) {
    refuse("blank " + std::to_string(targets.blank) + " is not in " + vocabulary);
  }
  const std::int64_t num_labels = lattices.num_samples() * lattices.max_labels;
  if (std::ssize(targets.labels) != num_labels) {
    refuse(std::to_string(targets.labels.size()) + " labels, expected " +
           std::to_string(num_labels) + ": samples x longest");
  }
  for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
    for (std::int64_t u = 0; u < lattices.num_labels[b]; ++u) {
      const std::int64_t label = targets.labels[b * lattices.max_labels + u];
      if (label >= 0 && label < targets.vocabulary && label != targets.blank) continue;
      refuse("label " + std::to_string(u) + " of sample " + std::to_string(b) + " is " +
             std::to_string(label) +
             (label == targets.blank ? ", the blank" : ", not in " + vocabulary));
    }
  }
}

/// A call of any of the functions: their arguments, checked, and what they do to one sample.
template <typename T>
class LossCall {
 public:
  LossCall(const Lattices& lattices, const TransducerTargets& targets, const T* logits,
           std::span<std::byte> workspace)
      : lattices_(lattices), targets_(targets), logits_(logits), workspace_(workspace) {
    check(lattices);
    check_targets(lattices, targets);
    std::int64_t begin = 0;
    for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
      begins_.push_back(begin);
      begin += Skewed::num_bytes(lattices.num_frames[b], lattices.num_positions(b));
    }
    if (std::ssize(workspace) < begin || reinterpret_cast<std::uintptr_t>(workspace.data()) % 8) {
      throw Error(ErrorKind::kInvalidArgument,
                  "transducer loss: a workspace of " + std::to_string(workspace.size()) +
                      " bytes, expected " + std::to_string(begin) + ", aligned to 8");
    }
  }

  float forward(std::int64_t b) const {
    const Skewed s = skewed(b);
    for (std::int64_t t = 0; t < s.frames; ++t) {
      for (std::int64_t u = 0; u < s.positions; ++u) read_row(s, b, t, u);
    }
    return static_cast<float>(-loops_.alpha(s));
  }

  void backward(std::int64_t b, float scale, T* gradient) const {
    const Skewed s = skewed(b);
    const std::int64_t end = s.cell(s.frames - 1, s.positions - 1);
    loops_.occupy(s, s.alpha[end] + static_cast<double>(s.blank[end]));
    // Backwards, since the rows that the forward read last are still in cache.
    for (std::int64_t t = s.frames - 1; t >= 0; --t) {
      for (std::int64_t u = 0; u < s.positions; ++u) write_row(s, b, t, u, scale, gradient);
    }
    if (!lattices_.is_packed()) clear_padding(s, b, gradient);
  }

 private:
  Skewed skewed(std::int64_t b) const {
    return {workspace_.data() + begins_[b], lattices_.num_frames[b], lattices_.num_positions(b)};
  }

  std::int64_t row(std::int64_t b, std::int64_t t, std::int64_t u) const {
    return (lattices_.first_row(b) + t * lattices_.frame_stride(b) + u) * targets_.vocabulary;
  }

  std::int64_t label(std::int64_t b, std::int64_t u) const {
    return targets_.labels[b * lattices_.max_labels + u];
  }

  void read_row(const Skewed& s, std::int64_t b, std::int64_t t, std::int64_t u) const {
    const T* x = logits_ + row(b, t, u);
    const RowSum sum = loops_.row_sum(x, targets_.vocabulary);
    const double log_sum = static_cast<double>(sum.max) + std::log(sum.sum);
    const auto log_probability = [&](std::int64_t k) {
      return static_cast<float>(static_cast<double>(kernels::to_f32(x[k])) - log_sum);
    };
    const std::int64_t cell = s.cell(t, u);
    s.log_sum[cell] = static_cast<float>(log_sum);
    s.blank[cell] = log_probability(targets_.blank);
    s.label[cell] = u + 1 < s.positions ? log_probability(label(b, u)) : 0.0F;
  }

  void write_row(const Skewed& s, std::int64_t b, std::int64_t t, std::int64_t u, float scale,
                 T* gradient) const {
    const std::int64_t cell = s.cell(t, u);
    const std::int64_t begin = row(b, t, u);
    T* dx = gradient + begin;
    const float shift = s.log_sum[cell];
    if (shift == internal::kAllZero) {
      std::fill_n(dx, targets_.vocabulary, internal::from_f32<T>(0 * scale));
      return;
    }
    loops_.gradient_row(logits_ + begin, shift, scale, dx, targets_.vocabulary);
    dx[targets_.blank] = internal::from_f32<T>(scale * s.blank[cell]);
    if (u + 1 < s.positions) dx[label(b, u)] = internal::from_f32<T>(scale * s.label[cell]);
  }

  void clear_padding(const Skewed& s, std::int64_t b, T* gradient) const {
    const auto clear = [&](std::int64_t t, std::int64_t first, std::int64_t last) {
      std::fill(gradient + row(b, t, first), gradient + row(b, t, last), T{});
    };
    for (std::int64_t t = 0; t < lattices_.max_frames; ++t) {
      clear(t, t < s.frames ? s.positions : 0, lattices_.max_labels + 1);
    }
  }

  const Lattices& lattices_;
  const TransducerTargets& targets_;
  const T* logits_;
  std::span<std::byte> workspace_;
  std::vector<std::int64_t> begins_;  // of samples in the workspace
  const Loops<T> loops_;
};

template <typename T>
void forward(const LossCall<T>& call, std::int64_t num_samples, float* loss,
             const kernels::Spread& spread) {
  spread(num_samples, [&](std::int64_t b) { loss[b] = call.forward(b); });
}

template <typename T>
void backward(const LossCall<T>& call, std::int64_t num_samples, const float* loss_gradient,
              T* gradient, const kernels::Spread& spread) {
  spread(num_samples, [&](std::int64_t b) { call.backward(b, loss_gradient[b], gradient); });
}

template <typename T>
void both(const LossCall<T>& call, std::int64_t num_samples, const float* loss_gradient,
          float* loss, T* gradient, const kernels::Spread& spread) {
  spread(num_samples, [&](std::int64_t b) {
    loss[b] = call.forward(b);
    call.backward(b, loss_gradient[b], gradient);
  });
}

}  // namespace

void transducer_loss(const Lattices& lattices, const TransducerTargets& targets,
                     const float* logits, std::span<std::byte> workspace, float* loss,
                     const kernels::Spread& spread) {
  forward(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss, spread);
}

void transducer_loss(const Lattices& lattices, const TransducerTargets& targets,
                     const kernels::Bf16* logits, std::span<std::byte> workspace, float* loss,
                     const kernels::Spread& spread) {
  forward(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss, spread);
}

void transducer_loss_backward(const Lattices& lattices, const TransducerTargets& targets,
                              const float* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, float* gradient,
                              const kernels::Spread& spread) {
  backward(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss_gradient,
           gradient, spread);
}

void transducer_loss_backward(const Lattices& lattices, const TransducerTargets& targets,
                              const kernels::Bf16* logits, std::span<std::byte> workspace,
                              const float* loss_gradient, kernels::Bf16* gradient,
                              const kernels::Spread& spread) {
  backward(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss_gradient,
           gradient, spread);
}

void transducer_loss_and_gradient(const Lattices& lattices, const TransducerTargets& targets,
                                  const float* logits, std::span<std::byte> workspace,
                                  const float* loss_gradient, float* loss, float* gradient,
                                  const kernels::Spread& spread) {
  both(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss_gradient, loss,
       gradient, spread);
}

void transducer_loss_and_gradient(const Lattices& lattices, const TransducerTargets& targets,
                                  const kernels::Bf16* logits, std::span<std::byte> workspace,
                                  const float* loss_gradient, float* loss, kernels::Bf16* gradient,
                                  const kernels::Spread& spread) {
  both(LossCall(lattices, targets, logits, workspace), lattices.num_samples(), loss_gradient, loss,
       gradient, spread);
}

std::int64_t transducer_workspace_bytes(const Lattices& lattices) {
  check(lattices);
  std::int64_t bytes = 0;
  for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
    bytes += Skewed::num_bytes(lattices.num_frames[b], lattices.num_positions(b));
  }
  return bytes;
}

}  // namespace trireme::speech
