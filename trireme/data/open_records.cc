#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "trireme/base/system_error.h"
#include "trireme/data.h"
#include "trireme/data/csv_records.h"
#include "trireme/data/folder_records.h"
#include "trireme/data/json_lines_records.h"
#include "trireme/data/mds_records.h"
#include "trireme/data/table_records.h"
#include "trireme/data/tar_records.h"
#include "trireme/data/tfrecord_records.h"
#include "trireme/data/unpack.h"
#include "trireme/error.h"
#include "trireme/remote/location.h"
#include "trireme/remote/objects.h"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

/// What a file is by its name, compressed or not.
struct Ending {
  std::string_view text;
  RecordForm form;
};
constexpr Ending kEndings[] = {{".tar", RecordForm::kTar},
                               {".jsonl", RecordForm::kJsonLines},
                               {".ndjson", RecordForm::kJsonLines},
                               {".csv", RecordForm::kCsv},
                               {".tsv", RecordForm::kCsv},
                               {".tfrecord", RecordForm::kTfrecord},
                               {".tfrecords", RecordForm::kTfrecord},
                               {".parquet", RecordForm::kParquet},
                               {".arrow", RecordForm::kArrow},
                               {".feather", RecordForm::kArrow}};

[[noreturn]] void refuse_records(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "records: " + problem);
}

std::string known_forms() {
  std::string text = "expected files that end in";
  for (const Ending& ending : kEndings) text += " " + std::string(ending.text);
  return text +
         " (all but tar, Parquet and Arrow also .gz, .zst), a folder of such, one with index.json "
         "(MDS), or one with a folder for "
         "each class; RecordFileOptions::form says what other names are";
}

std::string ending_without_packing(const fs::path& path) {
  std::string text = without_packing(remote::shown(path)).extension().string();
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
      const fs::path name = remote::shown(file);
      if (!remote::is_remote(file) && !fs::exists(file)) {
        throw_system_error("open records", file, ENOENT);
      }
      refuse_records("'" + name.string() + "' is of no known form: " + known_forms());
    }
    if (form_of_file(file) != form) {
      refuse_records("'" + remote::shown(files.front()).string() + "' and '" +
                     remote::shown(file).string() + "' are of different forms; expected one");
    }
  }
  return form;
}

/// Of a name elsewhere nobody knows before it is asked for: one that ends in a slash, or in nothing that is known of files.
bool is_folder(const fs::path& path, RecordForm form) {
  if (!remote::is_remote(path)) return fs::is_directory(path);
  const bool is_named = form == RecordForm::kByName && form_of_file(path) == RecordForm::kByName;
  return is_named || path.native().ends_with('/') || form == RecordForm::kMds ||
         form == RecordForm::kFolder;
}

/// What a bucket holds right under a prefix. Of URLs nothing can be found out.
std::vector<fs::path> objects_in(const fs::path& folder) {
  if (!remote::is_in_store(folder)) return {};
  return remote::Objects(read_remote_environment()).list(folder / "");
}

/// What lies directly in a folder and has a known form, or, where the form is given, any file; sorted.
std::vector<fs::path> files_in(const fs::path& folder, RecordForm form) {
  const auto is_record = [form](const fs::path& path) {
    const bool is_hidden = path.filename().native().starts_with('.');
    return !is_hidden && (form != RecordForm::kByName || form_of_file(path) != RecordForm::kByName);
  };
  std::vector<fs::path> files;
  if (remote::is_remote(folder)) {
    std::ranges::copy_if(objects_in(folder), std::back_inserter(files), is_record);
    return files;
  }
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (is_record(entry->path()) && entry->is_regular_file()) files.push_back(entry->path());
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
    case RecordForm::kParquet:
    case RecordForm::kArrow:
      return std::make_shared<TableRecords>(
          form == RecordForm::kParquet ? TableForm::kParquet : TableForm::kArrow, files,
          options.cache_bytes, load_table_library());
    case RecordForm::kCsv: {
      const bool has_tabs = ending_without_packing(files.front()) == ".tsv";
      const CsvFormat format{.separator = options.separator.value_or(has_tabs ? '\t' : ','),
                             .has_quotes = options.has_quotes};
      return std::make_shared<CsvRecords>(
          files,
          CsvOptions{.format = format, .columns = options.columns, .packed = options.unpack});
    }
    default:
      refuse_records("'" + remote::shown(files.front()).string() +
                     "' is a file; expected a folder");
  }
}

std::shared_ptr<const RecordSource> open_folder(const fs::path& folder,
                                                const RecordFileOptions& options) {
  const bool is_by_name = options.form == RecordForm::kByName;
  const bool is_remote = remote::is_remote(folder);
  const bool holds_files =
      !is_by_name && options.form != RecordForm::kMds && options.form != RecordForm::kFolder;
  if (is_by_name || holds_files) {
    const std::vector<fs::path> files = files_in(folder, options.form);
    if (!files.empty()) {
      return open_files(is_by_name ? form_of_files(files) : options.form, files, options);
    }
    if (holds_files) {
      refuse_records("folder '" + remote::shown(folder).string() + "' has no files" +
                     (is_remote && !remote::is_in_store(folder)
                          ? " that could be found: a URL cannot be listed; name the files"
                          : ""));
    }
  }
  // Only now: shards of other forms may have an index.json, too. Elsewhere nothing else is left.
  const bool has_index = is_by_name && (is_remote || fs::exists(folder / "index.json"));
  if (has_index || options.form == RecordForm::kMds) {
    return std::make_shared<MdsRecords>(folder, options.unpack);
  }
  if (is_remote) {
    refuse_records("a folder for each class is not read from elsewhere, as '" +
                   remote::shown(folder).string() + "'; put its files into tar shards");
  }
  return std::make_shared<FolderRecords>(
      folder, FolderRecordOptions{.suffixes = options.suffixes, .classes = options.classes});
}

}  // namespace

std::shared_ptr<const RecordSource> open_records(const std::vector<fs::path>& paths,
                                                 const RecordFileOptions& options) {
  if (paths.empty()) refuse_records("none are named; " + known_forms());
  const auto folder =
      std::ranges::find_if(paths, [&](const auto& path) { return is_folder(path, options.form); });
  if (folder == paths.end()) {
    const bool is_named = options.form == RecordForm::kByName;
    return open_files(is_named ? form_of_files(paths) : options.form, paths, options);
  }
  if (paths.size() == 1) return open_folder(*folder, options);
  refuse_records("one folder, or files, can be named; got folder '" +
                 remote::shown(*folder).string() + "' and " + std::to_string(paths.size() - 1) +
                 " more");
}

}  // namespace trireme::data
