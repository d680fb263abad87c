#include "packs/speech/data/utterances.h"

#include <span>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::speech {

Utterances::Utterances(std::vector<Entry> entries) : entries_(std::move(entries)) {
  if (!entries_.empty()) return;
  throw Error(ErrorKind::kInvalidArgument, "utterances: there are none in these files");
}

const Utterances::Entry& Utterances::entry(std::int64_t index) const {
  if (index >= 0 && index < size()) return entries_[static_cast<std::size_t>(index)];
  throw Error(ErrorKind::kInvalidArgument, "utterances: there is no " + std::to_string(index) +
                                               " among " + std::to_string(size()));
}

const AudioInfo& Utterances::info(std::int64_t index) const {
  const Entry& one = entry(index);
  if (one.damage.empty()) return one.info;
  throw Error(ErrorKind::kCorruptData, name(index) + ": " + one.damage);
}

Audio Utterances::decode(std::int64_t index) const {
  const Entry& one = entry(index);
  const AudioInfo& expected = info(index);
  const DecodeOptions options{
      .frame_offset = one.frame_offset, .num_frames = expected.num_frames, .is_mono = true};
  const auto unchanged = [&](Audio audio) {
    if (audio.sample_rate == expected.sample_rate) return audio;
    throw Error(ErrorKind::kCorruptData, "it has " + std::to_string(audio.sample_rate) +
                                             " Hz; when it was opened it had " +
                                             std::to_string(expected.sample_rate));
  };
  try {
    if (one.field.empty()) {
      const data::ReadTimer timer("decode");
      return unchanged(decode_audio(one.file, options));
    }
    const auto encoded = [&] {
      data::ReadTimer timer("read");
      auto bytes = one.records->read(one.record, one.field);
      timer.add_bytes(std::ssize(bytes));
      return bytes;
    }();
    const data::ReadTimer timer("decode");
    return unchanged(decode_audio(encoded, options));
  } catch (const Error& error) {
    const bool is_changed = error.kind() == ErrorKind::kInvalidArgument;  // of what was opened
    throw Error(is_changed ? ErrorKind::kCorruptData : error.kind(),
                name(index) + ": " + error.message());
  }
}

std::string Utterances::name(std::int64_t index) const {
  const Entry& one = entry(index);
  if (one.records) return one.records->name(one.record);
  return "utterance '" + one.name + "' of '" + one.file.parent_path().string() + "'";
}

std::string Utterances::identity() const {
  Sha256 hash;
  const data::RecordSource* before = nullptr;
  for (const Entry& one : entries_) {
    Json line = {one.name, one.text, one.frame_offset, one.info.sample_rate, one.info.num_frames};
    if (one.records.get() != before) line.push_back(one.records->identity());
    before = one.records.get();
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    hash.add(std::as_bytes(std::span(text)));
  }
  return hash.finish();
}

}  // namespace trireme::speech
