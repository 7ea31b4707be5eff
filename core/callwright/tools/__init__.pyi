from callwright.tools.spec import FunctionTool as FunctionTool
from callwright.tools.spec import Refused as Refused
from callwright.tools.spec import ToolError as ToolError
from callwright.tools.spec import ToolSpec as ToolSpec
from callwright.tools.spec import tool as tool
from callwright.tools.validation import Mismatch as Mismatch
from callwright.tools.validation import Validation as Validation
from callwright.tools.validation import validate as validate
