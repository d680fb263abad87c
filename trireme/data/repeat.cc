#include <cstdint>
#include <string>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/data.h"
#include "trireme/data/mixture.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostTimes = std::int64_t{1} << 20;

void require_repeat(bool condition, const std::string& problem) {
  if (!condition) throw Error(ErrorKind::kInvalidArgument, "repeat: " + problem);
}

/// Says how it is to be repeated; that is done by who reads in the order of a training (RepeatedOrder).
class Repeated : public Source {
 public:
  Repeated(std::shared_ptr<const Source> source, const SampleRepeats& options)
      : source_(std::move(source)), options_(options) {}

  std::int64_t num_samples() const override { return source_->num_samples(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  std::vector<Lengths> padded_lengths() const override { return source_->padded_lengths(); }
  Lengths lengths_of(Sample sample) const override { return source_->lengths_of(sample); }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    source_->read(sample, destinations);
  }
  void will_read(std::span<const Sample> samples) const override { source_->will_read(samples); }
  std::string reading() const override { return source_->reading(); }
  std::string identity() const override {
    return sha256("repeated " + std::to_string(options_.times) + " times in blocks of " +
                  std::to_string(options_.block_samples) + " " + fingerprint(*source_));
  }
  SampleRepeats repeats() const override { return options_; }

 private:
  std::shared_ptr<const Source> source_;
  SampleRepeats options_;
};

}  // namespace

std::shared_ptr<const Source> repeat(std::shared_ptr<const Source> source,
                                     const SampleRepeats& options) {
  require_repeat(source != nullptr, "there is no source");
  require_repeat(options.times >= 1 && options.times <= kMostTimes,
                 "each sample is used 1 to 2^20 times, got " + std::to_string(options.times));
  require_repeat(options.block_samples >= 1,
                 "a block has 1 sample or more, got " + std::to_string(options.block_samples));
  require_repeat(source->repeats().times <= 1, "the source repeats its samples already");
  if (options.times == 1) return source;
  if (source->repeats().times == 0) source = mixture_with_passes(*source, options.times);
  require_repeat(source != nullptr,
                 "the source has an order of its own, visit by visit, in which nothing comes back; "
                 "repeat what it is made of");
  return std::make_shared<Repeated>(std::move(source), options);
}

}  // namespace trireme::data
