#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data.h"
#include "trireme/engine/readers/reader_link.h"

namespace trireme::readers {

/// A source whose samples other ranks read (`SampleServer`). This rank has the same source, and asks it for all but samples:
/// their number, fields, lengths, identity, which are compared before the first sample.
///
/// What `will_read` names is asked for at once, so that readers work while this rank trains. An answer that says no to one
/// sample is forgotten: who needs a sample asks for it alone, and gets its error.
class RemoteSource final : public data::Source {
 public:
  /// index   of the source at the readers.
  RemoteSource(std::shared_ptr<const data::Source> source, std::int64_t index,
               std::shared_ptr<ReaderLink> link);

  std::int64_t num_samples() const override { return source_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return source_->fields(); }
  std::vector<data::Lengths> padded_lengths() const override { return source_->padded_lengths(); }
  data::Lengths lengths_of(data::Sample sample) const override {
    return source_->lengths_of(sample);
  }
  std::string identity() const override { return source_->identity(); }
  data::SampleRepeats repeats() const override { return source_->repeats(); }
  std::string reading() const override;

  /// Errors   also those that the reader's source throws, naming its rank; kInvalidArgument where it has other data.
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  void will_read(std::span<const data::Sample> samples) const override;

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< Index, visit.
  using Answer = std::shared_ptr<const SampleAnswer>;

  /// Which of an answer's samples.
  struct Asked {
    Answer answer;  ///< Null: it could not be asked for.
    std::size_t place = 0;
    std::int64_t call = -1;  ///< Of `will_read`.
  };

  void require_index(data::Sample sample) const;
  void compare_once() const;
  void forget_old() const;
  Asked take(data::Sample sample) const;
  Asked ask_for(data::Sample sample) const;
  std::span<const std::byte> bytes_of(const Asked& asked, data::Sample sample) const;

  std::shared_ptr<const data::Source> source_;
  std::int64_t index_;
  std::shared_ptr<ReaderLink> link_;  // of all sources of a session

  mutable std::once_flag compared_;
  mutable std::mutex mutex_;  ///< Of all below.
  mutable std::map<Key, Asked> asked_;
  mutable std::deque<std::vector<Key>> calls_;  ///< Of `will_read`, the last few.
  mutable std::int64_t num_calls_ = 0;
};

}  // namespace trireme::readers
