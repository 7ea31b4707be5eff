from callwright.episodes.codec import ChatCodec as ChatCodec
from callwright.episodes.codec import PlainCodec as PlainCodec
from callwright.episodes.driving import converse as converse
from callwright.episodes.episode import Episode as Episode
from callwright.episodes.episode import Turn as Turn
from callwright.episodes.token_episode import Generated as Generated
from callwright.episodes.token_episode import Rollout as Rollout
