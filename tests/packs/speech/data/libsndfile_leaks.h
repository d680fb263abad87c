#pragma once

/// libsndfile 1.2.0 keeps what it knows of an Ogg whose header it refuses, some 6 kB: a leak, and none of ours.
/// Included once by a program.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the name that the sanitizer looks for
extern "C" __attribute__((used)) const char* __lsan_default_suppressions() {
  return "leak:libvorbis\nleak:libsndfile\n";
}
