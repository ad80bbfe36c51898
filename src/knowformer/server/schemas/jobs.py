"""Jobs, as they are listed."""

from pydantic import BaseModel

from knowformer.server.jobs import Job


class JobsResponse(BaseModel):
    """Jobs, newest first."""

    items: list[Job]
