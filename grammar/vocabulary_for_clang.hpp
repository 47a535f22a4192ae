// Included before everything else that includes the ANTLR runtime, by clang alone: clang 14 deletes the default
// constructor of the runtime's Vocabulary, because libstdc++'s vector does not initialise what it holds in so many
// words. With initialisers its members are the same, and it has a constructor again.
// clang-format off
#define _literalNames _literalNames{}
#define _symbolicNames _symbolicNames{}
#define _displayNames _displayNames{}
#include <antlr4-runtime/Vocabulary.h>
#undef _literalNames
#undef _symbolicNames
#undef _displayNames
// clang-format on
