#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

namespace trireme::recipes {

/// Where decoded images are kept for later epochs.
struct KeepDecoded {
  std::int64_t bytes = 0;
  std::filesystem::path folder;
};

/// `--NAME-keep-decoded` and `--NAME-keep-folder`.
inline void add_keep_options(CLI::App& app, const std::string& name, KeepDecoded& keep) {
  auto* bytes =
      app.add_option("--" + name + "-keep-decoded", keep.bytes,
                     "Decoded images that each process keeps for later epochs, `2GiB`; of "
                     "evaluation as much more")
          ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
          ->check(CLI::NonNegativeNumber);
  app.add_option("--" + name + "-keep-folder", keep.folder,
                 "Folder for a scratch file that they are kept in; memory where it is not given")
      ->needs(bytes)
      ->check(CLI::ExistingDirectory);
}

}  // namespace trireme::recipes
