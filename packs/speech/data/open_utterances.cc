#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "packs/speech/data/utterances.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::speech {
namespace {

namespace fs = std::filesystem;
using Entry = Utterances::Entry;
using Names = std::vector<std::string>;
using KnownNames = std::span<const std::string_view>;

constexpr std::string_view kAudioFields[] = {"flac", "wav", "mp3", "ogg", "opus"};
constexpr std::string_view kPathFields[] = {"audio_filepath", "path"};
constexpr std::string_view kTextFields[] = {"text", "txt", "sentence"};
constexpr double kRounding = 0.01;  // seconds: manifests with two digits
constexpr std::string_view kTranscript = ".trans.txt";

std::string_view without_space(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string listed(KnownNames names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

/// What `audio`, bytes or a file, says of itself; where it is damaged, what is wrong. Other errors pass.
template <typename Encoded>
void read_info(const Encoded& audio, const UtteranceFileOptions& options, Entry& entry) {
  try {
    entry.info = audio_info(audio);
    if (options.is_checked) decode_audio(audio);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorruptData) throw;
    entry.damage = error.message();
  }
}

/// The utterances of one path that data::open_records opens.
class OfRecords {
 public:
  OfRecords(const fs::path& path, const UtteranceFileOptions& options)
      : folder_(fs::is_directory(path) ? path : path.parent_path()),
        options_(options),
        records_(data::open_records({path}, options.files)) {}

  void append(std::vector<Entry>& to) const {
    for (std::int64_t i = 0; i < records_->num_records(); ++i) to.push_back(entry(i));
  }

 private:
  Entry entry(std::int64_t index) const {
    const Names fields = records_->fields(index);
    Entry made{.records = records_, .record = index};
    const auto audio = choose(fields, options_.audio_field, kAudioFields);
    const auto file = choose(fields, options_.path_field, kPathFields);
    if (audio && options_.path_field.empty()) {
      made.field = *audio;
      read_info(records_->read(index, *audio), options_, made);
    } else if (file) {
      made.name = text_of(index, *file);
      made.file = folder_ / made.name;
      read_info(made.file, options_, made);
      if (made.damage.empty()) cut_out(made, fields);
    } else {
      refuse(index, "has no audio: expected " + listed(kAudioFields) + ", or a file's name as " +
                        listed(kPathFields));
    }
    const auto text = choose(fields, options_.text_field, kTextFields);
    if (!text) refuse(index, "has no text: expected " + listed(kTextFields));
    made.text = options_.text_key.empty() ? text_of(index, *text) : value_in(index, *text);
    return made;
  }

  /// The field that was named, else the first that the record has.
  static std::optional<std::string> choose(const Names& fields, const std::string& named,
                                           KnownNames known) {
    if (!named.empty()) return named;
    const auto found = std::ranges::find_if(
        known, [&](std::string_view name) { return std::ranges::count(fields, name) > 0; });
    return found == known.end() ? std::nullopt : std::optional(std::string(*found));
  }

  std::string text_of(std::int64_t index, const std::string& field) const {
    const auto bytes = records_->read(index, field);
    return std::string(without_space({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  std::string value_in(std::int64_t index, const std::string& field) const {
    const Json json = parse_json(text_of(index, field), field + " of " + records_->name(index));
    const auto value = json.is_object() ? json.find(options_.text_key) : json.end();
    if (value == json.end() || !value->is_string()) {
      refuse(index, "has no text: expected a JSON object with a text '" + options_.text_key +
                        "' as `" + field + "`");
    }
    return value->get<std::string>();
  }

  /// Leaves the part that the record names, rounded to whole frames. What is beyond the end by less than manifests'
  /// rounding is cut.
  void cut_out(Entry& entry, const Names& fields) const {
    const auto offset = seconds(entry.record, fields, "offset");
    if (!offset) return;
    const auto frames_of = [&](double time) {
      return static_cast<std::int64_t>(
          std::llround(time * static_cast<double>(entry.info.sample_rate)));
    };
    const auto duration = seconds(entry.record, fields, "duration");
    const std::int64_t total = entry.info.num_frames, first = frames_of(*offset);
    std::int64_t count = duration ? frames_of(*duration) : total - first;
    const std::int64_t beyond = first + count - total;
    if (beyond > 0 && beyond <= frames_of(kRounding)) count -= std::min(beyond, count);
    if (first > total || count > total - first) {
      refuse(entry.record, "names " + std::to_string(count) + " frames from frame " +
                               std::to_string(first) + " on; its file has " +
                               std::to_string(total));
    }
    entry.frame_offset = first;
    entry.info.num_frames = count;
  }

  std::optional<double> seconds(std::int64_t index, const Names& fields,
                                const std::string& field) const {
    if (std::ranges::count(fields, field) == 0) return std::nullopt;
    const std::string text = text_of(index, field);
    if (text.empty() || text == "null") return std::nullopt;
    constexpr double kMost = 1e9;
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || !(value >= 0) ||
        value > kMost) {
      refuse(index, "has '" + text.substr(0, 80) + "' as `" + field + "`: expected seconds");
    }
    return value;
  }

  [[noreturn]] void refuse(std::int64_t index, const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, records_->name(index) + " " + problem);
  }

  fs::path folder_;
  const UtteranceFileOptions& options_;
  std::shared_ptr<const data::RecordSource> records_;
};

/// The files *.trans.txt in or below a folder, sorted; none where it is none.
std::vector<fs::path> transcripts_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return found;
  for (fs::recursive_directory_iterator it(folder, problem), end; !problem && it != end;
       it.increment(problem)) {
    if (it->path().filename().string().ends_with(kTranscript)) found.push_back(it->path());
  }
  if (problem) throw_system_error("list folder", folder, problem);
  std::ranges::sort(found);
  return found;
}

fs::path audio_beside(const fs::path& transcript, const std::string& name) {
  for (const std::string_view ending : kAudioFields) {
    fs::path file = transcript.parent_path() / (name + "." + std::string(ending));
    if (is_there(file)) return file;
  }
  throw Error(ErrorKind::kIo, "'" + transcript.string() + "' names '" + name +
                                  "', and no audio of that name lies beside it: expected " +
                                  listed(kAudioFields));
}

/// The lines of a transcript: a name, a blank, a text.
void append_transcript(const fs::path& transcript, const UtteranceFileOptions& options,
                       std::vector<Entry>& to) {
  const std::string content = read_file(transcript);
  std::string_view rest = content;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = without_space(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty()) continue;
    const std::size_t blank = line.find(' ');
    Entry made{.name = std::string(line.substr(0, blank)),
               .text = std::string(without_space(line.substr(std::min(blank, line.size()))))};
    if (made.name.find('/') != std::string::npos) {
      throw Error(ErrorKind::kCorruptData, "line " + std::to_string(number) + " of '" +
                                               transcript.string() +
                                               "': expected a name without '/', then a text");
    }
    made.file = audio_beside(transcript, made.name);
    read_info(made.file, options, made);
    to.push_back(std::move(made));
  }
}

}  // namespace

Utterances open_utterances(const std::vector<fs::path>& paths,
                           const UtteranceFileOptions& options) {
  std::vector<Entry> entries;
  for (const fs::path& path : paths) {
    const std::vector<fs::path> transcripts = transcripts_in(path);
    for (const fs::path& transcript : transcripts) append_transcript(transcript, options, entries);
    if (transcripts.empty()) OfRecords(path, options).append(entries);
  }
  return Utterances(std::move(entries));
}

}  // namespace trireme::speech
