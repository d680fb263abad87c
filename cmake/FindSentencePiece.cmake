# Imports SentencePiece from the system, whose package has no CMake configuration.
#
# Defines    sentencepiece::processor (encodes, decodes), sentencepiece::train (both).

find_path(SentencePiece_INCLUDE sentencepiece_trainer.h)
find_library(SentencePiece_PROCESSOR sentencepiece)
find_library(SentencePiece_TRAIN sentencepiece_train)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SentencePiece
  REQUIRED_VARS SentencePiece_INCLUDE SentencePiece_PROCESSOR SentencePiece_TRAIN
  REASON_FAILURE_MESSAGE "install what Debian's libsentencepiece-dev holds")

if(SentencePiece_FOUND AND NOT TARGET sentencepiece::train)
  add_library(sentencepiece::processor UNKNOWN IMPORTED)
  set_target_properties(
    sentencepiece::processor PROPERTIES IMPORTED_LOCATION "${SentencePiece_PROCESSOR}"
                                        INTERFACE_INCLUDE_DIRECTORIES "${SentencePiece_INCLUDE}")
  add_library(sentencepiece::train UNKNOWN IMPORTED)
  set_target_properties(
    sentencepiece::train PROPERTIES IMPORTED_LOCATION "${SentencePiece_TRAIN}"
                                    INTERFACE_LINK_LIBRARIES sentencepiece::processor)
endif()
