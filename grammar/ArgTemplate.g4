// One argv token of a rule: a literal, or one of the two templates.
//
// Anything else that holds `<` or `>` is a mistake. NAMED, OPEN and CLOSE are in no rule: they exist so that a
// mistake has a name and a place. Text between templates is opaque, so only `<`, `>` and what they enclose matter.
// tests/policyc/arg_template_test.cpp shows every shape.
grammar ArgTemplate;

argument
    : INT EOF                # integer
    | TEXT? URL_PATH EOF     # urlPath
    | TEXT? EOF              # literal
    ;

INT      : '<INT>' ;
URL_PATH : '<URL_PATH>' ;
NAMED    : '<' ~[<>]* '>' ;
OPEN     : '<' ;
CLOSE    : '>' ;
TEXT     : ~[<>]+ ;
