#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>

#include "trireme/base/system_error.h"
#include "trireme/data.h"
#include "trireme/data/csv_records.h"
#include "trireme/data/folder_records.h"
#include "trireme/data/json_lines_records.h"
#include "trireme/data/mds_records.h"
#include "trireme/data/tar_records.h"
#include "trireme/data/tfrecord_records.h"
#include "trireme/data/unpack.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

/// What a file is by its name, compressed or not.
struct Ending {
  std::string_view text;
  RecordForm form;
};
constexpr Ending kEndings[] = {
    {".tar", RecordForm::kTar},           {".jsonl", RecordForm::kJsonLines},
    {".ndjson", RecordForm::kJsonLines},  {".csv", RecordForm::kCsv},
    {".tsv", RecordForm::kCsv},           {".tfrecord", RecordForm::kTfrecord},
    {".tfrecords", RecordForm::kTfrecord}};

[[noreturn]] void refuse_records(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "records: " + problem);
}

std::string known_forms() {
  std::string text = "expected files that end in";
  for (const Ending& ending : kEndings) text += " " + std::string(ending.text);
  return text +
         " (also .gz, .zst), a folder of such, one with index.json (MDS), or one with a folder for "
         "each class; RecordFileOptions::form says what other names are";
}

std::string ending_without_packing(const fs::path& path) {
  std::string text = without_packing(path).extension().string();
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// kByName where the name says nothing.
RecordForm form_of_file(const fs::path& path) {
  const auto* ending = std::ranges::find(kEndings, ending_without_packing(path), &Ending::text);
  return ending == std::end(kEndings) ? RecordForm::kByName : ending->form;
}

/// The one form of all files. Refuses none and several.
RecordForm form_of_files(const std::vector<fs::path>& files) {
  const RecordForm form = form_of_file(files.front());
  for (const fs::path& file : files) {
    if (form_of_file(file) == RecordForm::kByName) {
      if (!fs::exists(file)) throw_system_error("open records", file, ENOENT);
      refuse_records("'" + file.string() + "' is of no known form: " + known_forms());
    }
    if (form_of_file(file) != form) {
      refuse_records("'" + files.front().string() + "' and '" + file.string() +
                     "' are of different forms; expected one");
    }
  }
  return form;
}

/// What lies directly in a folder and has a known form, or, where the form is given, any file; sorted.
std::vector<fs::path> files_in(const fs::path& folder, RecordForm form) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const bool is_hidden = entry->path().filename().native().starts_with('.');
    const bool is_record =
        form != RecordForm::kByName || form_of_file(entry->path()) != RecordForm::kByName;
    if (is_hidden || !is_record || !entry->is_regular_file()) continue;
    files.push_back(entry->path());
  }
  if (problem) throw_system_error("list folder", folder, problem);
  std::ranges::sort(files);
  return files;
}

std::shared_ptr<const RecordSource> open_files(RecordForm form, const std::vector<fs::path>& files,
                                               const RecordFileOptions& options) {
  switch (form) {
    case RecordForm::kTar:
      return std::make_shared<TarRecords>(files);
    case RecordForm::kJsonLines:
      return std::make_shared<JsonLinesRecords>(files, options.unpack);
    case RecordForm::kTfrecord:
      return std::make_shared<TfrecordRecords>(files, options.unpack);
    case RecordForm::kCsv: {
      const bool has_tabs = ending_without_packing(files.front()) == ".tsv";
      const CsvFormat format{.separator = options.separator.value_or(has_tabs ? '\t' : ','),
                             .has_quotes = options.has_quotes};
      return std::make_shared<CsvRecords>(
          files,
          CsvOptions{.format = format, .columns = options.columns, .packed = options.unpack});
    }
    default:
      refuse_records("'" + files.front().string() + "' is a file; expected a folder");
  }
}

std::shared_ptr<const RecordSource> open_folder(const fs::path& folder,
                                                const RecordFileOptions& options) {
  const bool is_by_name = options.form == RecordForm::kByName;
  const bool holds_files =
      !is_by_name && options.form != RecordForm::kMds && options.form != RecordForm::kFolder;
  if (is_by_name || holds_files) {
    const std::vector<fs::path> files = files_in(folder, options.form);
    if (!files.empty()) {
      return open_files(is_by_name ? form_of_files(files) : options.form, files, options);
    }
    if (holds_files) refuse_records("folder '" + folder.string() + "' has no files");
  }
  // Only now: shards of other forms may have an index.json, too.
  const bool has_index = is_by_name && fs::exists(folder / "index.json");
  if (has_index || options.form == RecordForm::kMds) {
    return std::make_shared<MdsRecords>(folder, options.unpack);
  }
  return std::make_shared<FolderRecords>(
      folder, FolderRecordOptions{.suffixes = options.suffixes, .classes = options.classes});
}

}  // namespace

std::shared_ptr<const RecordSource> open_records(const std::vector<fs::path>& paths,
                                                 const RecordFileOptions& options) {
  if (paths.empty()) refuse_records("none are named; " + known_forms());
  const auto folder =
      std::ranges::find_if(paths, [](const auto& path) { return fs::is_directory(path); });
  if (folder == paths.end()) {
    const bool is_named = options.form == RecordForm::kByName;
    return open_files(is_named ? form_of_files(paths) : options.form, paths, options);
  }
  if (paths.size() == 1) return open_folder(*folder, options);
  refuse_records("one folder, or files, can be named; got folder '" + folder->string() + "' and " +
                 std::to_string(paths.size() - 1) + " more");
}

}  // namespace trireme::data
