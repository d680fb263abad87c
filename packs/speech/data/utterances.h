#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "packs/speech/data/decode.h"
#include "trireme/data.h"

namespace trireme::speech {

/// Where audio and text stand in records. All of it changes results.
struct UtteranceFileOptions {
  data::RecordFileOptions files;  ///< Of tables: columns, quotes.
  std::string
      audio_field;  ///< With the bytes; none: the first of flac, wav, mp3, ogg, opus that the record has.
  std::string path_field;  ///< With a file's name, of manifests; none: audio_filepath or path.
  std::string text_field;  ///< None: the first of text, txt, sentence.
  std::string text_key;    ///< Of a field that is a JSON object: which of its values is the text.
  /// Decode all audio when it is opened, so that damage within a file is known then, and `data::skip_damaged` can
  /// replace it by an utterance of any length; else only what headers tell.
  bool is_checked = false;
};

/// Utterances with what is said in them, as they lie in files. Immutable.
class Utterances {
 public:
  struct Entry {
    std::shared_ptr<const data::RecordSource> records;  ///< None: of a folder.
    std::int64_t record = 0;
    std::string field;  ///< With the audio; none: it is in `file`.
    std::filesystem::path file;
    std::string name;  ///< Of a file, as its list has it.
    std::string text;
    std::int64_t frame_offset = 0;  ///< Of an utterance within a longer file.
    AudioInfo info;                 ///< Of the utterance.
    std::string damage;             ///< What is wrong with the audio, where something is.
  };

  /// kInvalidArgument where there are none.
  explicit Utterances(std::vector<Entry> entries);

  std::int64_t size() const { return std::ssize(entries_); }

  /// kInvalidArgument for an index out of range, as of all that follow.
  const std::string& text(std::int64_t index) const { return entry(index).text; }

  /// kCorruptData, naming the record, where the header of the audio is damaged.
  const AudioInfo& info(std::int64_t index) const;

  bool is_damaged(std::int64_t index) const { return !entry(index).damage.empty(); }

  /// One channel. Errors of decode_audio, naming the record.
  Audio decode(std::int64_t index) const;

  /// File and place, for messages.
  std::string name(std::int64_t index) const;

  /// A hash of names, texts, rates and lengths; not of folders above, or of the sound.
  std::string identity() const;

 private:
  const Entry& entry(std::int64_t index) const;

  std::vector<Entry> entries_;
};

/// Opens utterances; of each path it is seen what it is:
///
///     a folder with *.trans.txt     LibriSpeech's, also below it: lines `84-121123-0000 GO DO YOU HEAR`, beside
///                                   84-121123-0000.flac
///     records with an audio field   tar shards (7.flac, 7.txt), TFRecord, MDS: `data::open_records`
///     records with a file's name    manifests: TSV, CSV, JSON lines (NeMo's); names as of the manifest's folder. With
///                                   `offset`, and `duration`, in seconds: a part of that file; up to 10 ms that are
///                                   beyond its end are cut
///
/// Errors   those of open_records; kCorruptData, naming the record, where it has no text, no audio, or an offset that
///          is no number; kInvalidArgument for a field that a record has not; kIo for a file that is missing. Damaged
///          audio is one when it is read.
/// Cost     a text of memory each. Reads the header of each file; of audio in records, and of MP3, all of it.
Utterances open_utterances(const std::vector<std::filesystem::path>& paths,
                           const UtteranceFileOptions& options = {});

}  // namespace trireme::speech
