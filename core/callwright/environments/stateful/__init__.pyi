from callwright.environments.stateful.environment import NOW as NOW
from callwright.environments.stateful.environment import Scenario as Scenario
from callwright.environments.stateful.environment import StatefulEnvironment as StatefulEnvironment
from callwright.environments.stateful.extending import Fill as Fill
from callwright.environments.stateful.extending import extended as extended
from callwright.environments.stateful.session import StatefulSession as StatefulSession
from callwright.environments.stateful.tools import Toolsets as Toolsets
