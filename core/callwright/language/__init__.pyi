from callwright.language.parser import ParseFailure as ParseFailure
from callwright.language.parser import ParseLimits as ParseLimits
from callwright.language.parser import Parser as Parser
from callwright.language.program import Call as Call
from callwright.language.program import Program as Program
from callwright.language.program import Reference as Reference
