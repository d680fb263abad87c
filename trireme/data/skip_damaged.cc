#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "trireme/base/descriptor.h"
#include "trireme/base/json.h"
#include "trireme/base/system_error.h"
#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

/// The samples that this process has skipped. Thread-safe.
class Quarantine {
 public:
  explicit Quarantine(SkipOptions options) : options_(std::move(options)) {}

  /// A sample is damaged as `error` says. Throws where that is one too many.
  void add(std::int64_t index, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (skipped_.contains(index)) return;
    if (std::ssize(skipped_) >= options_.max_skipped) {
      throw Error(ErrorKind::kCorruptData, "sample " + std::to_string(index) + ": " +
                                               error.message() + "; " +
                                               std::to_string(skipped_.size()) +
                                               " others were skipped, and max_skipped is " +
                                               std::to_string(options_.max_skipped));
    }
    if (!options_.quarantine.empty()) append({{"sample", index}, {"error", error.message()}});
    skipped_.insert(index);
  }

 private:
  /// In one call, so that lines of several processes do not mix.
  void append(const Json& entry) const {
    const std::string line = entry.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const Descriptor file(
        ::open(options_.quarantine.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file.is_open()) throw_system_error("open quarantine file", options_.quarantine, errno);
    const ssize_t written = ::write(file.number(), line.data(), line.size());
    if (written == std::ssize(line)) return;
    throw_system_error("write quarantine file", options_.quarantine, written < 0 ? errno : ENOSPC);
  }

  SkipOptions options_;
  std::mutex mutex_;  // for what follows, and the file
  std::set<std::int64_t> skipped_;
};

class SkipDamaged : public Source {
 public:
  SkipDamaged(std::shared_ptr<const Source> source, const SkipOptions& options)
      : source_(std::move(source)),
        has_lengths_(!source_->padded_lengths().empty()),
        quarantine_(options) {}

  std::int64_t num_samples() const override { return source_->num_samples(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  std::vector<Lengths> padded_lengths() const override { return source_->padded_lengths(); }
  void will_read(std::span<const Sample> samples) const override { source_->will_read(samples); }
  std::string reading() const override { return source_->reading(); }
  std::string identity() const override { return source_->identity(); }
  SampleRepeats repeats() const override { return source_->repeats(); }

  Lengths lengths_of(Sample sample) const override {
    Lengths lengths;
    if (has_lengths_) {
      first_whole(sample, [&](Sample candidate) {
        lengths = source_->lengths_of(candidate);
        return true;
      });
    }
    return lengths;
  }

  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    const Lengths lengths = lengths_of(sample);
    first_whole(sample, [&](Sample candidate) {
      if (has_lengths_ && source_->lengths_of(candidate) != lengths) return false;
      source_->read(candidate, destinations);
      return true;
    });
  }

 private:
  /// Calls `use` for the sample and those behind it, round the end, until it has taken one: returned true. What it
  /// throws of a damaged one is quarantined. Whether a sample is damaged is asked each time: an image may be read as far as
  /// one visit needs it and not another, and what other ranks have met does not enter.
  template <typename Use>
  void first_whole(Sample sample, Use use) const {
    const std::int64_t count = source_->num_samples();
    std::int64_t index = sample.index;
    for (std::int64_t i = 0; i == 0 || i < count; ++i, index = (index + 1) % count) {
      try {
        if (use(Sample{.index = index, .visit = sample.visit})) return;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorruptData) throw;
        quarantine_.add(index, error);
      }
    }
    throw Error(ErrorKind::kCorruptData,
                "sample " + std::to_string(sample.index) +
                    " is damaged, and no other is whole and as long as it");
  }

  std::shared_ptr<const Source> source_;
  bool has_lengths_;
  mutable Quarantine quarantine_;
};

}  // namespace

std::shared_ptr<const Source> skip_damaged(std::shared_ptr<const Source> source,
                                           const SkipOptions& options) {
  if (options.max_skipped < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "max_skipped is " + std::to_string(options.max_skipped) + "; expected 0 or more");
  }
  return std::make_shared<SkipDamaged>(std::move(source), options);
}

}  // namespace trireme::data
